#!/bin/bash
# Installs what the tests need and is missing, and tests two builds: the released program (build/release), with the
# tests that look at many cases or compare figures with other systems', and one with AddressSanitizer and
# UndefinedBehaviorSanitizer (build/test), with all tests, those of many cases looking at fewer. Prints the output of the
# tests that failed, and last ctest's own summaries; the whole logs are build/*/ctest.log, of a second run of what failed
# under sanitizers where anything did. Further arguments go to ctest (tools/test.sh -R read).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/install_packages.sh build cluster test
# Both at once: of a source that was changed each has one unit to compile, which occupies one processor. Together they
# compile no more at a time than ninja does by itself.
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(($(nproc) / 2 + 1))}
tools/build.sh optimised &
optimised=$! built=0
tools/build.sh test || built=$?
wait "$optimised" || built=$?
((built == 0)) || exit "$built"
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
# To keep an allocation's callers for reports takes up to a tenth of the time: what fails is run again with them.
sanitized() {  # how many callers, arguments
  ASAN_OPTIONS=malloc_context_size=$1${ASAN_OPTIONS:+:$ASAN_OPTIONS} run test test "${@:2}"
}
run optimised release "$@"
optimised=$result result=0
sanitized 1 "$@"
if ((result)); then
  echo "testing what failed again, with the callers of allocations in reports"
  sanitized 30 "$@" --rerun-failed
  exit 1
fi
exit "$optimised"
