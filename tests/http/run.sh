#!/bin/sh
# Runs the black-box tests of the HTTP API against a binary: run.sh BINARY [FILE...]
set -eu
if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: $0 BINARY [FILE...]; BINARY is the perdure to test" >&2
  exit 2
fi
PERDURE_BINARY=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
export PERDURE_BINARY
shift
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then set -- "$here"/*.test.mjs; fi
exec node --test "$@"
