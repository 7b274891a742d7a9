#!/usr/bin/env bash
# Installs the Debian packages that Fixit is built from and runs with; says nothing and asks nobody where all are
# there already. Debian 12 or a later one; as root, or with sudo.
set -euo pipefail

packages=(
  # to build
  ca-certificates git g++ make cmake ninja-build pkg-config lld ccache binutils
  # libraries: README.md, "Dependencies", says what each is for
  libzmq3-dev cppzmq-dev libhiredis-dev libmsgpack-cxx-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev
  libspdlog-dev libfmt-dev libcurl4-openssl-dev libzstd-dev libssl-dev libseccomp-dev libcapstone-dev libopenblas-dev
  # to run
  redis-server
)
test_packages=(libgtest-dev libgmock-dev)
for argument in "$@"; do
  case "$argument" in
    --tests) packages+=("${test_packages[@]}") ;;
    --help) echo "usage: ops/setup.sh [--tests]   install what is missing (--tests: for the tests too)"; exit 0 ;;
    *) echo "ops/setup.sh: unknown argument $argument; see --help" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "ops/setup.sh: these packages are missing and need root (sudo is not here either): ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "installing ${#missing[@]} Debian packages: ${missing[*]}" >&2
# Debian starts a redis-server of its own when the package is installed; Fixit does not use it. policy-rc.d would
# need a file outside this folder, so the service is left as Debian has it.
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
  > /dev/null
