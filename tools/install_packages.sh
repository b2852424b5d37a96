#!/bin/bash
# Installs the Debian packages of the named sections of tools/packages.txt that are missing; silent when none is.
#
#   tools/install_packages.sh SECTION ...
set -euo pipefail
list=$(dirname "${BASH_SOURCE[0]}")/packages.txt

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install_packages: this is no Debian; install the counterparts of the packages in tools/packages.txt" >&2
  exit 2
fi

missing=()
for section in "$@"; do
  packages=$(awk -v section="[$section]" '/^\[/ { inside = $0 == section; next } inside && !/^#/ && NF' "$list")
  if [[ -z $packages ]]; then
    echo "install_packages: tools/packages.txt has no section [$section]" >&2
    exit 2
  fi
  for package in $packages; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2> /dev/null || true)
    [[ $status == installed ]] || missing+=("$package")
  done
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo > /dev/null; then
    echo "install_packages: packages are missing; as root, run: apt-get install ${missing[*]}" >&2
    exit 2
  fi
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" < /dev/null >> "$log" 2>&1; }

echo "installing ${missing[*]}"
# Fresh package lists first: outdated ones name versions that the mirrors have dropped. They may also be
# current already on a machine without network, so that only the installation's own failure counts.
apt update || true
if ! apt install --yes --no-install-recommends "${missing[@]}"; then
  cat "$log" >&2
  echo "install_packages: apt-get failed" >&2
  exit 2
fi
