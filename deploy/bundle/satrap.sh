#!/bin/sh
# Runs the programs of this folder with the libraries of this folder.
#
#   ./satrap COMMAND...                the command line: ./satrap demo, ./satrap train JOB, ./satrap help
#   ./satrap exec PROGRAM [ARGUMENT...]    a program of this folder, such as nn_worker/nn_worker
#   ./satrap test [PROGRAM...]         all tests here, or these; ends with "N passed, N failed"
#
# CUDA's libraries are not included: add their folders to LD_LIBRARY_PATH.
set -eu
case "$0" in
  */*) here="$(cd "${0%/*}" && pwd)" ;;
  *) here="$(pwd)" ;;
esac
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# Runs the programs "$@" as tests. Shows the output of a test only if it failed.
run_tests() {
  passed=0
  failed=0
  TEST_TMPDIR="$(mktemp -d)"
  export TEST_TMPDIR
  trap 'rm -rf "$TEST_TMPDIR"' EXIT
  for program in "$@"; do
    if (cd "$TEST_TMPDIR" && "$here/$program") >"$TEST_TMPDIR/output" 2>&1; then
      passed=$((passed + 1))
      # Show which tests were skipped, for example because there is no GPU.
      grep '^\[  SKIPPED \] [0-9]' "$TEST_TMPDIR/output" | sed "s|^|$program: |" || true
    else
      failed=$((failed + 1))
      cat "$TEST_TMPDIR/output"
      echo "failed: $program"
    fi
  done
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

case "${1:-help}" in
  exec)
    program="$2"
    shift 2
    exec "$here/$program" "$@"
    ;;
  test)
    shift
    # The paths of programs have no blanks.
    # shellcheck disable=SC2046
    [ $# -gt 0 ] || set -- $(cat "$here/tests.txt")
    run_tests "$@"
    ;;
  *) exec "$here/deploy/satrap_cli" "--install_dir=$here" "$@" ;;
esac
