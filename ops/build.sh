#!/usr/bin/env bash
# Configures and builds: ops/build.sh [PRESET] [TARGET ...]. Quiet unless something fails.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --help ]; then
  echo "usage: ops/build.sh [PRESET] [TARGET ...]   PRESET: default (build/), asan, tsan (build-PRESET/)"
  exit 0
fi
preset=${1:-default}
shift || true
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cmake --preset "$preset" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
folder=build
[ "$preset" = default ] || folder=build-$preset
if [ -t 2 ]; then
  cmake --build "$folder" ${1:+--target "$@"} >&2
else
  cmake --build "$folder" ${1:+--target "$@"} > "$log" 2>&1 || { tail -60 "$log" >&2; exit 1; }
fi
