#!/usr/bin/env bash
# The NN worker for cards starts where neither a driver nor a library of CUDA is installed: it then reads its
# flags, and says of a card only what is missing.
set -euo pipefail
program=nn_worker/nn_worker_cuda
if ldd "$program" | grep -E 'cuda|cublas|nccl'; then
  echo "needs a library of CUDA to start"
  exit 1
fi
said="$("./$program" 2>&1)" && { echo "takes no flags: $said"; exit 1; }
grep -qF -- '--coordinator is missing' <<<"$said" || { echo "says: $said"; exit 1; }
