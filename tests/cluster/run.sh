#!/bin/sh
# Runs the tests of stores on servers against a binary: run.sh BINARY CHECKER [FILE...]
# PERDURE_FAULT_SECONDS says for how long things break in the tests of faults; 25 unless told.
set -eu
if [ $# -lt 2 ] || [ ! -x "$1" ] || [ ! -x "$2" ]; then
  echo "usage: $0 BINARY CHECKER [FILE...]; BINARY is the perdure to test, CHECKER the program check_history" >&2
  exit 2
fi
PERDURE_BINARY=$(realpath "$1")
PERDURE_CHECK_HISTORY=$(realpath "$2")
export PERDURE_BINARY PERDURE_CHECK_HISTORY
shift 2
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then set -- "$here"/*.test.mjs; fi
exec node --test --test-concurrency=1 "$@"
