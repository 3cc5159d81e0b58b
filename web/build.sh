#!/bin/sh
# Rebuilds web/dist from web/playground. The same sources give the same bytes, so CI runs this and then expects no difference:
#   web/build.sh && git diff --exit-code -- web/dist
# Needs Node 20.19 or newer and GNU gzip: other compressors give other bytes.
set -eu
cd "$(dirname "$0")/playground"
npm ci --ignore-scripts
npm run build
