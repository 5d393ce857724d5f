#!/usr/bin/env bash
# The program that times cuBLASLt's algorithms starts without a driver, and then says what is missing.
# With a card it prints a source.
set -euo pipefail
program=nn_worker/backend/benchmark/algorithm_table_cuda
if said="$("./$program" --seconds=1 2>/dev/null)"; then
  grep -q '^constexpr AlgorithmPlace kCard = {' <<<"$said" || { echo "says: $said"; exit 1; }
else
  said="$("./$program" --seconds=1 2>&1)" || true
  grep -q '^algorithm_table: ' <<<"$said" || { echo "says: $said"; exit 1; }
  [[ "$(wc -l <<<"$said")" -eq 1 ]] || { echo "says more than one line: $said"; exit 1; }
fi
