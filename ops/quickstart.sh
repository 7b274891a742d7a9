#!/usr/bin/env bash
# From a fresh clone to dataset rows: installs what is missing, builds, runs configs/sweeps/quickstart.yaml with a
# private redis-server, a coordinator, a worker and a CPU profiler, and prints what came of it. All that it
# started has stopped when it ends. A second run builds nothing anew and repeats no work.
set -euo pipefail
cd "$(dirname "$0")/.."

data=var/quickstart
json=()
while [ $# -gt 0 ]; do
  case "$1" in
    --json) json=(--json) ;;
    --data) data=${2:?--data needs a folder}; shift ;;
    --help)
      echo "usage: ops/quickstart.sh [--data FOLDER] [--json]"
      echo "  --data FOLDER  where store, journal, datasets and logs go (default: var/quickstart)"
      echo "  --json         print the outcome as one JSON document on stdout"
      exit 0 ;;
    *) echo "ops/quickstart.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

step() { printf '== %s\n' "$*" >&2; }
step "packages"
ops/setup.sh
step "build (ten to twenty minutes the first time on two cores)"
ops/build.sh default programs
step "sweep"
# What the user's own site file or environment says of Redis is for their own system, not for this demonstration.
unset FIXIT_CONFIG FIXIT_REDIS FIXIT_DATA
exec build/bin/fixit launch configs/sweeps/quickstart.yaml --local --wait --redis embedded --data "$data" "${json[@]}"
