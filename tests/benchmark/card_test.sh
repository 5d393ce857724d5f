#!/usr/bin/env bash
# card.sh in a bundle of fakes: what passes, fails, hangs and comes too late is told apart, and the
# table has the ratios of medians. Without PyTorch nothing begins.
set -euo pipefail
failures=0
fail() { echo "card_test: $*"; failures=1; }

bundle="$TEST_TMPDIR/bundle"
# $1: a program of the bundle; its script comes on stdin.
fake() {
  mkdir -p "$bundle/$(dirname "$1")"
  { echo '#!/usr/bin/env bash'; cat; } >"$bundle/$1"
  chmod 755 "$bundle/$1"
}
tests=(nn_worker/device/cuda/cuda_device_test nn_worker/device/cuda/cublaslt_plan_test
  nn_worker/backend/testing/cuda_conformance_test nn_worker/models/cuda_training_test
  nn_worker/layer/cuda_layer_test nn_worker/collective/nccl_collective_test)
for program in "${tests[@]}" nn_worker/backend/benchmark/kernel_benchmark_cuda; do
  fake "$program" <<<'echo "[  PASSED  ] 3 tests."; echo "[  SKIPPED ] 2 tests, listed below:"'
done
fake deploy/satrap_cli <<<'echo "runs: $*"'
# Each prints a line with its arguments. Ours alternates between 200 and 400 samples a second.
fake line <<'EOS'
for flag in "$@"; do [[ "$flag" != --*=* ]] || declare "${flag:2}"; done
echo '{"benchmark": "step", "model": "'"$model"'", "batch": '"$batch"', "precision": "'"$precision"'",' \
  "$figures}"
EOS
fake nn_worker/models/step_benchmark_cuda <<'EOS'
count="$(cat "$COUNT" 2>/dev/null || echo 0)"
echo $((count + 1)) >"$COUNT"
figures="\"samples_per_second\": $((count / 18 * 200 + 200))" ./line "$@"
EOS
fake peer <<'EOS'
# PyTorch is asked for first, and then the packages with CUDA's libraries.
if [[ "$*" == "-c import torch" ]]; then
  [[ -n "${NO_TORCH:-}" ]] || exit 0
  printf 'Traceback:\nNo module named torch\n' >&2
  exit 1
fi
[[ "$1" != -c ]] || { echo packages/nvidia/cu13/lib; exit; }
[[ "$1" != - ]] || exec python3 "$@"
compile=default samples=150
for flag in "$@"; do
  [[ "$flag" != --compile=max-autotune ]] || compile=max-autotune samples=200
  # A call that only fills the cache.
  [[ "$flag" != --seconds=0.01 ]] || exit 0
done
figures="\"samples_per_second\": $samples, \"compile\": \"$compile\"" ./line "$@"
EOS
fake commands/compute-sanitizer <<'EOS'
[[ " $* " == *" --gtest_filter=-*DeathTest.* "* ]] || sleep 1000 # as it does with a death test
echo "========= ERROR SUMMARY: 0 errors"
EOS
fake commands/nvidia-smi <<<'echo "a card"'
cp deploy/bundle/satrap.sh "$bundle/satrap"
chmod 755 "$bundle/satrap"
cp tests/benchmark/card.sh "$bundle/"
mkdir -p "$bundle/tests/benchmark"
mv "$bundle/card.sh" "$bundle/tests/benchmark/"
export COUNT="$TEST_TMPDIR/count"

# $1: the folder; $2: seconds; $3: the expected exit status. Folder and Python are relative to where
# the session begins.
session() {
  local status=0
  (cd "$TEST_TMPDIR" &&
    PATH="$bundle/commands:$PATH" bundle/tests/benchmark/card.sh "$1" "$2" bundle/peer) \
    >"$TEST_TMPDIR/$1.output" 2>&1 || status=$?
  [[ $status -eq $3 ]] ||
    { fail "$1 exits with $status"; cat "$TEST_TMPDIR/$1.output" "$TEST_TMPDIR/$1"/*.txt; }
}
# $1: a session's folder; $2: what one of its lines matches.
says() { grep -Eq -- "$2" "$TEST_TMPDIR/$1/summary.txt" || fail "$1: nothing matches '$2'"; }

session good 120 0
says good 'cuda_device_test +passed in [0-9]+ s, 2 tests skipped'
says good 'kernels +passed'
says good 'racecheck_cuda_conformance_test +passed'
grep -q 'runs: .*bench deepfm .*--precision=bf16 .*nn_worker.device=CUDA' \
  "$TEST_TMPDIR/good/job_bf16.txt" || fail "the job was not run"
# Ours has 200 and 400, the peer 150 at both times, and 200 where it was tuned.
says good '^dlrm +131072 BF16 +300 +150 +2.00$'
says good '^deepfm +131072 BF16 +300 +200 +1.50$'
[[ "$(grep -c '^d.*2\.00$' "$TEST_TMPDIR/good/summary.txt")" -eq 17 ]] || fail "the table is wrong"

# One test fails, one hangs until the time is up.
fake "${tests[1]}" <<<'echo "[  FAILED  ] 1 test"; exit 1'
fake "${tests[2]}" <<<'sleep 1000'
session bad 5 1
says bad 'cublaslt_plan_test +failed with 1$'
says bad 'cuda_conformance_test +not finished in [1-5] s$'
says bad 'cuda_training_test +skipped: the time is up$'
says bad 'steps +skipped from deepfm, 131072, BF16 on: the time is up$'
says bad '^model +batch'

NO_TORCH=1 session without 120 1
[[ "$(<"$TEST_TMPDIR/without.output")" == "card.sh: $TEST_TMPDIR/bundle/peer cannot import torch: "\
"No module named torch; name a Python that has PyTorch as the third argument" ]] ||
  fail "without PyTorch: $(<"$TEST_TMPDIR/without.output")"
[[ ! -e "$TEST_TMPDIR/without" ]] || fail "a session begins without PyTorch"
exit "$failures"
