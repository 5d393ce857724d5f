#!/usr/bin/env bash
# The kernel benchmark for cards starts without a driver, and then says what is missing. With a card it
# measures an operation.
set -euo pipefail
program=nn_worker/backend/benchmark/kernel_benchmark_cuda
if said="$("./$program" --batch=4096 --only=Activate --precision=F32 2>&1)"; then
  grep -q '"device":"card 0 .*"operation":"Activate"' <<<"$said" || { echo "says: $said"; exit 1; }
else
  grep -q '^kernel_benchmark: ' <<<"$said" || { echo "says: $said"; exit 1; }
  [[ "$(wc -l <<<"$said")" -eq 1 ]] || { echo "says more than one line: $said"; exit 1; }
fi
