#!/bin/sh
# Brings PgBouncer, which a test puts between the server and its database. What is there already is
# left alone, without a word.
set -eu
PATH=$PATH:/usr/sbin:/usr/local/sbin:/opt/homebrew/bin

command -v pgbouncer >/dev/null 2>&1 && exit 0
if command -v apt-get >/dev/null 2>&1; then
    root=""
    [ "$(id -u)" = 0 ] || root="sudo -n"
    $root apt-get update -q >&2 || true # an old list may do
    $root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 pgbouncer >&2 || true
    # The package's own pooler is of no use to anybody.
    if command -v systemctl >/dev/null 2>&1; then $root systemctl disable --now pgbouncer >/dev/null 2>&1 || true; fi
elif command -v brew >/dev/null 2>&1; then
    brew install pgbouncer >&2 || true
fi
command -v pgbouncer >/dev/null 2>&1 || {
    echo "the tests need PgBouncer: install the package pgbouncer (Debian's, Homebrew's, or PGDG's)" >&2
    exit 1
}
