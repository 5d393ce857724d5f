#!/usr/bin/env bash
# ./setup cuda in a checkout of its own, with stand-ins for nvcc, pip and dpkg-query: it prefers the
# machine's toolkit, fetches one otherwise, and does each thing once.
set -euo pipefail
setup="$(readlink -f setup)"
requirements="$(readlink -f third_party/cuda/requirements.txt)"
root="$TEST_TMPDIR/checkout"
stand_ins="$TEST_TMPDIR/bin"
failures=0

# Writes the program $1, whose text comes on stdin.
stand_in() {
  mkdir -p "$(dirname "$1")"
  { echo '#!/bin/bash'; cat; } >"$1"
  chmod +x "$1"
}

new_checkout() {
  rm -rf "$root" "$stand_ins"
  mkdir -p "$root/third_party/cuda"
  cp "$setup" "$root/setup"
  cp "$requirements" "$root/third_party/cuda/requirements.txt"
  # Every package is installed.
  stand_in "$stand_ins/dpkg-query" <<'END'
for package in "${@:4}"; do echo "installed $package"; done
END
  # Counts the fetches; makes the files of a toolkit in the folder of --target.
  stand_in "$stand_ins/python3" <<'END'
[[ "$*" != *--version* ]] || exit 0
while [[ "$1" != --target ]]; do shift; done
echo fetched >>"$FETCHES"
[[ ! -e "$FETCHES.fail" ]] || { echo "no route to the registry"; exit 1; }
mkdir -p "$2/nvidia/cu13/bin"
END
  export FETCHES="$TEST_TMPDIR/fetches"
  rm -f "$FETCHES" "$FETCHES.fail"
}

# A toolkit of version $1 in $TEST_TMPDIR/cuda, found by the path.
install_toolkit() {
  rm -rf "$TEST_TMPDIR/cuda"
  mkdir -p "$TEST_TMPDIR/cuda"/{include,lib64}
  touch "$TEST_TMPDIR/cuda/include"/{cublasLt.h,nccl.h} "$TEST_TMPDIR/cuda/lib64/libcudart_static.a"
  stand_in "$TEST_TMPDIR/cuda/bin/nvcc" <<<"echo 'Cuda compilation tools, release $1, V$1.88'"
  ln -sf "$TEST_TMPDIR/cuda/bin/nvcc" "$stand_ins/nvcc"
}

run_setup() { PATH="$stand_ins:/usr/bin:/bin" "$root/setup" cuda 2>"$TEST_TMPDIR/said"; }
fetches() { if [[ -e "$FETCHES" ]]; then wc -l <"$FETCHES"; else echo 0; fi; }

# $1: what is expected; the rest: a condition.
expect() {
  local what="$1"
  shift
  "$@" || { echo "expected: $what; setup said:"; cat "$TEST_TMPDIR/said"; failures=1; }
}
flag_names() { [[ "$(cat "$root/.cache/cuda/bazelrc")" == "build --//third_party/cuda:toolkit=$1" ]]; }
said() { grep -q -- "$1" "$TEST_TMPDIR/said"; }

[[ ! -e /usr/local/cuda/bin/nvcc ]] || { echo "skipped: this machine has a toolkit"; exit 0; }

new_checkout
install_toolkit 13.0
run_setup
expect "the machine's toolkit is used" flag_names "$TEST_TMPDIR/cuda"
expect "nothing is fetched" test "$(fetches)" = 0
expect "it says how to undo" said "remove $root/.cache/cuda to undo"

new_checkout
install_toolkit 12.4
run_setup
expect "an older toolkit is left alone" said "is not CUDA 13"
expect "one is fetched instead" flag_names "$root/.cache/cuda/wheels/nvidia/cu13"
run_setup
expect "the second time nothing is fetched" test "$(fetches)" = 1
expect "nor is anything said of a change" test -z "$(grep -v 'not CUDA 13' "$TEST_TMPDIR/said")"
echo "# another version" >>"$root/third_party/cuda/requirements.txt"
run_setup
expect "other versions are fetched anew" test "$(fetches)" = 2

new_checkout
install_toolkit 13.0
rm "$TEST_TMPDIR/cuda/include/cublasLt.h"
run_setup
expect "a toolkit that is not whole is left alone" said "lacks cuBLAS, NCCL or the static runtime"
expect "one is fetched instead of it" test "$(fetches)" = 1

new_checkout
touch "$FETCHES.fail"
! run_setup || { echo "a fetch that fails is no success"; failures=1; }
expect "pip's output is shown" said "no route to the registry"
expect "builds go on without CUDA" test ! -e "$root/.cache/cuda/bazelrc"
rm "$FETCHES.fail"
run_setup
expect "the next try fetches" flag_names "$root/.cache/cuda/wheels/nvidia/cu13"

exit "$failures"
