#!/bin/bash
# From a fresh clone to a first result: installs what is missing, builds in release mode and runs the main job on a
# built-in model and machine.
#
#   tools/setup.sh            Debian 12, as root or with sudo
#   tools/setup.sh --tests    installs what the tests need as well
#   tools/setup.sh --cluster  installs what sweeps and searches on many machines need as well (docs/cluster.md)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

sections=(build)
for argument in "$@"; do
  case $argument in
    --tests) sections+=(cluster test) ;;
    --cluster) sections+=(cluster) ;;
    *)
      echo "usage: tools/setup.sh [--tests] [--cluster]" >&2
      exit 2
      ;;
  esac
done

tools/install_packages.sh "${sections[@]}"
tools/build.sh release
job=(run resnet50 --machine dgx-a100 --ranks 64 --batch 256)
echo
echo "\$ build/release/armilla ${job[*]}"
build/release/armilla "${job[@]}"
