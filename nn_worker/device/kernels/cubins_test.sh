#!/usr/bin/env bash
# The linked program $2 holds machine code for compute capability 8.0 and 9.0, and PTX for later cards,
# of each of its $1 kernel sources. CUDA_TOOLKIT: the toolkit's folder.
set -euo pipefail
sources="$1"
program="$2"
dump="$CUDA_TOOLKIT/bin/cuobjdump"
failures=0

# $1: option of cuobjdump; $2: what each line of the code that is counted names.
expect_all() {
  local count
  count="$("$dump" "$1" "$program" | grep -c -- "$2" || true)"
  [[ "$count" -eq "$sources" ]] ||
    { echo "$program: $count parts of $2 code, and $sources kernel sources"; failures=1; }
}

expect_all --list-elf '\.sm_80\.cubin$'
expect_all --list-elf '\.sm_90\.cubin$'
expect_all --list-ptx '\.sm_90\.ptx$'
# The program starts without a driver and without CUDA's libraries.
! ldd "$program" | grep -E 'libcuda|libcublas|libnccl' ||
  { echo "$program: needs CUDA's libraries to start"; failures=1; }
exit "$failures"
