#!/bin/sh
# Compiles through ccache: through_ccache.sh SOURCES CCACHE COMPILER ARGUMENT ...
#
# What was kept of clones of these SOURCES elsewhere is found, too. A precompiled header goes before it is made anew: g++
# would read the old one, so that ccache took it for part of the source and knew none; and made again its bytes differ, and
# all that uses it would be compiled again.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1
shift
for argument; do
  case $previous$argument in
    -o*.gch) rm -f "$argument" ;;
  esac
  previous=$argument
done
exec "$@"
