#!/usr/bin/env bash
# The NN worker for cards starts where neither a driver nor a library of CUDA is installed: it then reads its
# flags, and says of a card only what is missing.
set -euo pipefail
program=nn_worker/nn_worker_cuda
if ldd "$program" | grep -E 'cuda|cublas|nccl'; then
  echo "needs a library of CUDA to start"
  exit 1
fi
for flags in '' '--card=1' '--card 1'; do
  # shellcheck disable=SC2086
  said="$("./$program" $flags 2>&1)" && { echo "takes '$flags': $said"; exit 1; }
  grep -qF -- '--coordinator is missing' <<<"$said" || { echo "says to '$flags': $said"; exit 1; }
done
