#!/bin/sh
# Brings what the HTTP audits need: Node, and the two packages. What is there already is left alone,
# without a word.
set -eu
cd "$(dirname "$0")"

if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "the HTTP audits need Node and npm: install them" >&2
        exit 1
    fi
    root=""
    [ "$(id -u)" = 0 ] || root="sudo -n"
    $root apt-get update -q
    DEBIAN_FRONTEND=noninteractive $root apt-get install -q -y --no-install-recommends nodejs npm
fi
[ -d node_modules/graphql-http ] || npm ci --ignore-scripts --no-audit --no-fund --silent
