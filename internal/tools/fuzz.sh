#!/usr/bin/env bash
# Fuzzes every target of the module in turn, each for the time that is given (10s, 2m), and fails
# where one finds something. The targets are found, not listed.
set -euo pipefail
cd "$(dirname "$0")/../.."
time=${1:?how long each target is fuzzed, such as 10s}
export CGO_ENABLED=0

targets=$(grep -rhoE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz\w+' . | wc -l)
[ "$targets" -gt 0 ] || { echo "there is no target to fuzz" >&2; exit 1; }
grep -rlE --include='*_test.go' --exclude-dir=node_modules '^func Fuzz\w+' . | xargs -n1 dirname | sort -u | while read -r package; do
    for target in $(grep -hoE '^func Fuzz\w+' "$package"/*_test.go | cut -d' ' -f2); do
        echo "$package $target"
        go test "$package" -run='^$' -fuzz="^$target\$" -fuzztime="$time"
    done
done
