#!/bin/bash
# Installs what the tests need and is missing, builds with AddressSanitizer and UndefinedBehaviorSanitizer, and runs
# all tests. Prints the output of the tests that failed, and last ctest's own summary; the whole log is in
# build/test/ctest.log. Further arguments go to ctest (tools/test.sh -R read).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh build cluster test
tools/build.sh test
echo "testing"
# Every allocation keeps this many of its callers for reports; thirty, the default, cost a tenth of the time.
export ASAN_OPTIONS=malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
log=build/test/ctest.log
result=0
ctest --preset test --parallel "$(nproc)" --quiet --output-log "$log" "$@" || result=$?
awk '
  /^(test [0-9]+$| *Start +[0-9]+: | *[0-9]+\/[0-9]+ Test +#[0-9]+: )/ { failed = 0 }
  / Test +#[0-9]+: / && !/( Passed |\*\*\*Skipped) / { failed = 1 }
  /^\[ERROR_MESSAGE\]|^Errors while running CTest/ { next }
  /% tests passed/ { summary = 1 }
  failed || summary
' "$log"
exit "$result"
