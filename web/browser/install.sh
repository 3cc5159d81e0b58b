#!/bin/sh
# Brings what the playground's test needs: Node, Chromium and the driver's one package. What is
# there already is left alone, without a word.
set -eu
cd "$(dirname "$0")"

missing=""
command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || missing="nodejs npm"
for name in "${CHROMIUM:-/usr/bin/chromium}" chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && found=yes && break
done
[ "${found:-}" = yes ] || missing="$missing chromium"

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "the playground's test needs $missing: install it" >&2
        exit 1
    fi
    root=""
    [ "$(id -u)" = 0 ] || root="sudo -n"
    $root apt-get update -q
    # shellcheck disable=SC2086 # a list of packages
    DEBIAN_FRONTEND=noninteractive $root apt-get install -q -y --no-install-recommends $missing
fi
[ -d node_modules/playwright-core ] || npm ci --ignore-scripts --no-audit --no-fund --silent
