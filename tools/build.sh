#!/bin/bash
# Configures and builds one preset of CMakePresets.json and says little while all is well.
#
#   tools/build.sh release|test|optimised|bench|fuzz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:?usage: tools/build.sh PRESET}

cmake --preset "$preset" --log-level=WARNING > /dev/null
# On a terminal ninja rewrites one line; elsewhere it would print one per source.
quiet=()
[[ -t 1 ]] || quiet=(-- --quiet)
echo "building $preset"
cmake --build --preset "$preset" "${quiet[@]}"
