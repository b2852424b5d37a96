#!/bin/bash
# Installs what the tests need and is missing, and tests two builds: the released program (build/release), with the
# tests that look at many cases or compare figures with other systems', and one with AddressSanitizer and
# UndefinedBehaviorSanitizer (build/test), with all tests, those of many cases looking at fewer. Prints the output of the
# tests that failed, and last ctest's own summaries; the whole logs are build/*/ctest.log. Further arguments go to ctest
# (tools/test.sh -R read).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh build cluster test
tools/build.sh optimised
tools/build.sh test
# Every allocation keeps this many of its callers for reports; thirty, the default, cost a tenth of the time.
export ASAN_OPTIONS=malloc_context_size=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
result=0
run() {  # preset, its folder, arguments
  local preset=$1 log=build/$2/ctest.log
  echo "testing $preset"
  ctest --preset "$preset" --parallel "$(nproc)" --quiet --output-log "$log" "${@:3}" || result=$?
  awk '
    /^(test [0-9]+$| *Start +[0-9]+: | *[0-9]+\/[0-9]+ Test +#[0-9]+: )/ { failed = 0 }
    / Test +#[0-9]+: / && !/( Passed |\*\*\*Skipped) / { failed = 1 }
    /^\[ERROR_MESSAGE\]|^Errors while running CTest/ { next }
    /% tests passed/ { summary = 1 }
    failed || summary
  ' "$log"
}
run optimised release "$@"
run test test "$@"
exit "$result"
