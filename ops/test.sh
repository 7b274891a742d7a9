#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all tests, with and without AddressSanitizer and
# UndefinedBehaviorSanitizer. `.ci/run` calls exactly this.
set -euo pipefail
cd "$(dirname "$0")/.."

sanitizers=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --no-sanitizers) sanitizers=no ;;
    --help)
      echo "usage: ops/test.sh [--no-sanitizers]"
      echo "  --no-sanitizers  leave out the AddressSanitizer and UndefinedBehaviorSanitizer build"
      exit 0 ;;
    *) echo "ops/test.sh: unknown argument $1; see --help" >&2; exit 2 ;;
  esac
  shift
done

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
unset FIXIT_CONFIG FIXIT_REDIS FIXIT_DATA

step "packages"
ops/setup.sh --tests
step "build"
ops/build.sh default
step "parts of this build"
sed 's/^/  /' build/fixit-parts.txt

failed=0
passed=0
skipped=0
# Runs the tests of one build and adds to the counts; prints failures whole.
run_tests() {
  local folder=$1
  shift
  local log
  log=$(mktemp)
  ctest --test-dir "$folder" --output-on-failure --timeout 600 "$@" > "$log" 2>&1 || true
  local summary run bad missed
  summary=$(grep -E 'tests passed, [0-9]+ tests failed out of' "$log" | tail -1 || true)
  run=$(sed -nE 's/.*failed out of ([0-9]+).*/\1/p' <<< "$summary")
  bad=$(sed -nE 's/.*, ([0-9]+) tests failed.*/\1/p' <<< "$summary")
  run=${run:-0}
  bad=${bad:-1}
  missed=$(grep -cE 'Test +#.*\*\*\*Skipped' "$log" || true)
  grep -E 'Test +#.*\*\*\*' "$log" | grep -v Skipped | sed -E 's/^.*Test +#[0-9]+: ([^ ]+).*\*\*\*/  not passed: \1: /' || true
  if [ "$bad" -gt 0 ]; then cat "$log"; fi
  if [ "$run" -eq 0 ]; then bad=1; fi
  printf '  %d tests, %d failed, %d skipped\n' "$run" "$bad" "$missed"
  if [ "$missed" -gt 0 ]; then grep -E 'Test +#.*\*\*\*Skipped' "$log" | sed -E 's/^.*Test +#[0-9]+: ([^ ]+).*/  skipped: \1/'; fi
  passed=$((passed + run - bad - missed))
  failed=$((failed + bad))
  skipped=$((skipped + missed))
  rm -f "$log"
}

step "unit and integration tests"
run_tests build -j 2 -LE 'endtoend|gpu'
step "end-to-end tests: all programs as processes"
run_tests build -j 1 -L endtoend
step "GPU tests"
if ls build/tests/gpu_* > /dev/null 2>&1; then
  run_tests build -j 1 -L gpu
else
  echo "  this version has no test that needs a GPU; none was skipped for want of one"
fi
if [ "$sanitizers" = yes ]; then
  step "build with AddressSanitizer and UndefinedBehaviorSanitizer"
  ops/build.sh asan
  step "tests with AddressSanitizer and UndefinedBehaviorSanitizer"
  run_tests build-asan -j 2 -LE 'endtoend|gpu'
  run_tests build-asan -j 1 -L endtoend
fi
step "done"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
