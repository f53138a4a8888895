#!/usr/bin/env bash
# Compiles the client and runs all its tests, and the recipes of docs/guides/http.md, against a perdure program:
#
#     clients/typescript/test.sh build/dev/perdure [TEST FILE...]
#
# Needs node 18 or newer, tsc 4.8 or newer and curl, on Debian 12 the packages nodejs, node-typescript and curl; nothing
# is downloaded. The summary of node's test runner comes last, and what has failed makes this fail.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: $0 BINARY [TEST FILE...], where BINARY is the perdure program to be tested" >&2
  exit 2
fi
PERDURE_BINARY="$(readlink -f "$1")"
export PERDURE_BINARY
# What somebody has set for a daemon of their own must not get into this.
unset PERDURE_URL PERDURE_TOKEN PERDURE_SPACE
shift
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"

rm -rf dist
tsc -p tsconfig.json
tsc -p test/types
[ $# -gt 0 ] || set -- test/*.test.mjs
exec node --test --test-reporter=spec "$@"
