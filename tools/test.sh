#!/bin/bash
# Installs what the tests need and is missing, and tests two builds: the released program (build/release), with the
# tests that look at many cases or compare figures with other systems', and one with AddressSanitizer and
# UndefinedBehaviorSanitizer (build/test), with all tests, those of many cases looking at fewer. Prints the output of the
# tests that failed, and last ctest's own summaries; the whole logs are build/*/ctest.log, of a second run of what failed
# under sanitizers where anything did. Further arguments go to ctest (tools/test.sh -R read).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh build cluster test
# Both at once: of a source that was changed each has one unit to compile, which occupies one processor, and each has
# tests that take long, beside which the other's are run. Together they compile no more at a time than ninja does by itself.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(($(nproc) / 2 + 1))}
trap 'trap "" TERM; kill 0; exit 130' INT  # which does not reach what runs in the background
run() {  # preset, its folder, arguments
  local log=build/$2/ctest.log result=0
  echo "testing $1"
  ctest --preset "$1" --parallel "$(nproc)" --quiet --output-log "$log" "${@:3}" || result=$?
  echo "tested $1:"
  awk '
    /^(test [0-9]+$| *Start +[0-9]+: | *[0-9]+\/[0-9]+ Test +#[0-9]+: )/ { failed = 0 }
    / Test +#[0-9]+: / && !/( Passed |\*\*\*Skipped) / { failed = 1 }
    /^\[ERROR_MESSAGE\]|^Errors while running CTest/ { next }
    /% tests passed/ { summary = 1 }
    failed || summary
  ' "$log"
  return "$result"
}
# To keep an allocation's callers for reports takes up to a tenth of the time: what fails is run again with them.
sanitized() {  # how many callers, arguments
  ASAN_OPTIONS=malloc_context_size=$1${ASAN_OPTIONS:+:$ASAN_OPTIONS} run test test "${@:2}"
}
{
  tools/build.sh optimised
  run optimised release "$@"
} &
optimised=$! result=0
tools/build.sh test || result=$?
if ((result == 0)) && ! sanitized 1 "$@"; then
  echo "testing what failed again, with the callers of allocations in reports"
  sanitized 30 "$@" --rerun-failed || true
  result=1
fi
wait "$optimised" || result=$?
exit "$result"
