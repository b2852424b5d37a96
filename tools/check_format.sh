#!/bin/bash
# Checks that every C++ source is formatted as .clang-format says, with version 14, whose output others differ from, and
# that comments keep to its width, which clang-format leaves to tools/reflow_comments.py.
#
#   tools/check_format.sh          list the files that are not, exit 1 if there are any; after all were, it looks only at
#                                  those that have changed since (later than build/formatted)
#   tools/check_format.sh --fix    format them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" > /dev/null && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo "check_format: clang-format 14 is missing; 'tools/setup.sh --tests' installs it" >&2
  exit 2
fi

stamp=build/formatted changed=()
if [[ ${1:-} != --fix && -e $stamp ]]; then
  [[ -n $(find .clang-format tools/check_format.sh tools/reflow_comments.py "$(command -v "$formatter")" -cnewer $stamp) ]] ||
    changed=(-cnewer $stamp)
fi
mapfile -d '' -t sources < <(find src bench tests \( -name '*.cc' -o -name '*.h' \) "${changed[@]}" -print0 | sort -z)
if ((${#sources[@]} == 0)); then
  ((${#changed[@]})) && exit
  echo "check_format: found no sources" >&2
  exit 2
fi

if [[ ${1:-} == --fix ]]; then
  printf '%s\0' "${sources[@]}" | xargs -0 -n 16 -P "$(nproc)" "$formatter" -i
  tools/reflow_comments.py --fix "${sources[@]}"
  exit
fi
mkdir -p build
touch $stamp.next  # what changes meanwhile is looked at again
good=true
tools/reflow_comments.py "${sources[@]}" || good=false
complaints=$(printf '%s\0' "${sources[@]}" | xargs -0 -n 16 -P "$(nproc)" "$formatter" --dry-run --Werror 2>&1) || good=false
if $good; then
  mv $stamp.next $stamp
  exit
fi
# One line per file says enough: the remedy is the same for all.
printf '%s\n' "$complaints" | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error:.*/\1: is not formatted/p' | sort -u
if [[ -n $complaints ]] && ! grep -q 'clang-format-violations' <<< "$complaints"; then
  printf '%s\n' "$complaints"
fi
echo "run tools/check_format.sh --fix" >&2
exit 1
