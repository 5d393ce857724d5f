#!/usr/bin/env bash
# card.sh in a bundle of fakes: what passes, fails, hangs and comes too late is told apart, what shows
# most comes first, parts can be chosen, and the results compare medians with the goals. Without
# PyTorch nothing begins.
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
  nn_worker/backend/testing/cuda_conformance_test nn_worker/trainer/testing/cuda_training_test
  nn_worker/layer/cuda_layer_test nn_worker/collective/nccl_collective_test)
for program in "${tests[@]}"; do
  fake "$program" <<<'echo "[  PASSED  ] 3 tests."; echo "[  SKIPPED ] 2 tests, listed below:"'
done
fake deploy/satrap_cli <<<'echo "runs: $*"'
# Each prints a line with its arguments. Ours alternates between 200 and 400 samples a second.
fake line <<'EOS'
for flag in "$@"; do [[ "$flag" != --*=* ]] || declare "${flag:2}"; done
echo '{"benchmark": "step", "model": "'"$model"'", "batch": '"$batch"', "precision": "'"$precision"'",' \
  "$figures}"
EOS
# Each configuration has 50,000,000 samples a second at the first time, and 90,000,000 after that.
fake nn_worker/backend/benchmark/step_benchmark_cuda <<'EOS'
[[ " $* " != *" --profile "* ]] || { echo "  1.0 us StepKernel"; exit; }
[[ " $* " != *" --capture=false "* ]] || exit 0
seen="$COUNT$(printf '%s' "$@")"
rate=50000000
[[ ! -e "$seen" ]] || rate=90000000
: >"$seen"
figures="\"samples_per_second\": $rate" ./line "$@"
EOS
fake nn_worker/backend/benchmark/algorithm_table_cuda <<<'echo "algorithm 7"; echo "7 us" >&2'
fake nn_worker/backend/benchmark/kernel_benchmark_cuda <<'EOS'
[[ " $* " != *" --small "* ]] || exit 0
kernel() {
  printf '{"benchmark": "kernel", "operation": "%s", "what": "%s", "precision": "BF16", %s}\n' \
    "$1" "$2" "\"us\": $3, \"share\": $4"
}
kernel LinearForward "429 x 400, ReLU" 100 0.1
kernel LinearBackward "1024 x 512, ReLU" 100 0.1
kernel LinearForward "400 x 400, ReLU" 100 0.5
kernel Fm "26 of n x 16" 9 0.1
kernel LinearForward "7 x 7" 100 0.1 # of neither step
kernel GatherRows "26 of 16" 100 '0.1, "sector_share": 0.5'
kernel ScatterGradients "26 of 16" 90 '0.1, "sector_share": 0.3'
echo '{"benchmark": "kern' # as when it is ended
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
compile=default samples=48000000
for flag in "$@"; do
  [[ "$flag" != --compile=max-autotune ]] || compile=max-autotune samples=60000000
  # A call that only fills the cache.
  [[ "$flag" != --seconds=0.01 ]] || { echo "$*" >>"$COUNT.compiled"; exit 0; }
done
figures="\"samples_per_second\": $samples, \"compile\": \"$compile\"" ./line "$@"
EOS
fake commands/compute-sanitizer <<'EOS'
# As it does with a death test.
[[ " $* " == *" --gtest_filter=-*DeathTest.* "* || " $* " == *" --small "* ]] || sleep 1000
echo "========= ERROR SUMMARY: 0 errors"
EOS
fake commands/nvidia-smi <<<'echo "a card"'
cp deploy/bundle/satrap.sh "$bundle/satrap"
chmod 755 "$bundle/satrap"
cp tests/benchmark/card.sh "$bundle/"
mkdir -p "$bundle/tests/benchmark"
mv "$bundle/card.sh" "$bundle/tests/benchmark/"

# $1: the folder; $2: seconds; $3: the expected exit status; then parts. Folder and Python are relative
# to where the session begins.
session() {
  local name="$1" seconds="$2" expected="$3" status=0
  shift 3
  (cd "$TEST_TMPDIR" &&
    COUNT="$TEST_TMPDIR/count.$name" PATH="$bundle/commands:$PATH" bundle/tests/benchmark/card.sh "$name" \
      "$seconds" bundle/peer "$@") >"$TEST_TMPDIR/$name.output" 2>&1 || status=$?
  [[ $status -eq $expected ]] || {
    fail "$name exits with $status"
    cat "$TEST_TMPDIR/$name.output" "$TEST_TMPDIR/$name"/*.txt
  }
}
# $1: a session's folder; $2: what one of its lines matches.
says() { grep -Eq -- "$2" "$TEST_TMPDIR/$1/summary.txt" || fail "$1: nothing matches '$2'"; }
# $1: a session's folder; then what its lines match, one after another.
in_order() {
  local folder="$1" pattern line last=0
  shift
  for pattern in "$@"; do
    line="$(grep -En -m 1 -- "$pattern" "$TEST_TMPDIR/$folder/summary.txt" | cut -d: -f1)"
    [[ "${line:-0}" -gt "$last" ]] || fail "$folder: '$pattern' is in line ${line:-0}, after $last"
    last="${line:-$last}"
  done
}

session good 200 0
says good 'cuda_device_test +passed in [0-9]+ s, 2 tests skipped'
in_order good 'cublaslt_plan_test +passed' 'step_deepfm_131072_BF16 +passed' \
  'peer_deepfm_131072_BF16 +passed' 'step_dlrm_131072_BF16 +passed' 'kernels +passed' \
  'job_bf16 +passed' 'algorithms +passed' 'profile_dlrm_8192 +passed' 'memcheck +passed' \
  'step_deepfm_65536_BF16 +passed' 'step_deepfm_131072_TF32 +passed' 'step_dlrm_8192_F32 +passed' \
  'job_f32 +passed' 'memcheck_cuda_conformance_test +passed' '^model +batch'
says good 'racecheck_BF16 +passed'
grep -q 'runs: .*bench deepfm .*--precision=bf16 .*nn_worker.device=CUDA' \
  "$TEST_TMPDIR/good/job_bf16.txt" || fail "the job was not run"
[[ "$(<"$TEST_TMPDIR/good/algorithms.txt")" == "algorithm 7" &&
  "$(<"$TEST_TMPDIR/good/algorithm_times.txt")" == "7 us" ]] || fail "the algorithms have no files"
# What PyTorch compiles before it is measured: every configuration once.
compiled="$TEST_TMPDIR/count.good.compiled"
[[ "$(sort -u "$compiled" | wc -l)" -eq 18 ]] || fail "compiles $(sort "$compiled")"
for line in '==== job_bf16.txt' 'algorithm 7' '==== summary.txt' '"model": "dlrm", "batch": 8192'; do
  grep -qF -- "$line" "$TEST_TMPDIR/good/everything.txt" || fail "not everything has '$line'"
done
# The peer is tuned for one configuration. Its rate is 48,000,000 otherwise.
says good '^deepfm +131072 BF16 +2,621 +2,185 +1\.20 +1900 us: MISSED, 0\.73: MISSED$'
says good '^dlrm +131072 BF16 +2,621 +2,731 +0\.96 +4800 us: met, 0\.74: MISSED$'
says good '^dlrm +65536 F32 +1,311 +1,365 +0\.96 +1\.00: met$'
says good '^dlrm +65536 TF32 +1,311 +1,365 +0\.96 +0\.85: MISSED$'
says good '^deepfm +8192 BF16 +164 +171 +0\.96 +-$'
[[ "$(grep -c '^d.*0\.96 ' "$TEST_TMPDIR/good/summary.txt")" -eq 17 ]] || fail "the table is wrong"
in_order good '^deepfm, BF16: under 40 % of the ceiling and over 2 % of a step of 1311 us:$' \
  '^ +100\.0 us  10\.0%  LinearForward, 429 x 400, ReLU$' \
  '^dlrm, BF16: under 40 % of the ceiling and over 2 % of a step of 1311 us:$' \
  '^ +100\.0 us  10\.0%  LinearBackward, 1024 x 512, ReLU$' \
  '^ +90\.0 us  30\.0%  ScatterGradients, 26 of 16$'
[[ "$(grep -c '^ .* us .*%' "$TEST_TMPDIR/good/summary.txt")" -eq 3 ]] || fail "not three are slow"

# Only the parts that are named, and the medians of two times.
session again 200 0 steps algorithms
session again 200 0 steps
! grep -Eq 'test|kernels|job|check' "$TEST_TMPDIR/again/summary.txt" || fail "again: runs other parts"
[[ "$(grep -c '"deepfm"' "$TEST_TMPDIR/again/step_deepfm_131072_BF16.txt")" -eq 2 ]] ||
  fail "again: does not add to what was there"
says again '^deepfm +131072 BF16 +1,872 +2,731 +0\.69 +1900 us: met, 0\.73: met$'

# One test fails, one hangs until the time is up.
fake "${tests[1]}" <<<'echo "[  FAILED  ] 1 test"; exit 1'
fake "${tests[2]}" <<<'sleep 1000'
session bad 5 1
says bad 'cublaslt_plan_test +failed with 1$'
says bad 'cuda_conformance_test +not finished in [1-5] s$'
says bad 'cuda_training_test +passed'
says bad 'kernels +skipped: the time is up$'
says bad 'steps +skipped from deepfm, 131072, BF16 on: the time is up$'
says bad '^model +batch'
[[ -s "$TEST_TMPDIR/bad/everything.txt" ]] || fail "bad: there is no file with everything"

# A part that does not finish within its own time is run again in the time that is left.
fake "${tests[1]}" <<<'exit 0'
fake "${tests[2]}" <<<'[[ -e "$COUNT.hung" ]] || { : >"$COUNT.hung"; exit 124; }'
session hung 60 0 tests
in_order hung 'cuda_conformance_test +not finished' 'cuda_conformance_test +passed'

session unknown 60 1 tests kernel
[[ "$(<"$TEST_TMPDIR/unknown.output")" == "card.sh: there is no part 'kernel'; there are tests "* ]] ||
  fail "of an unknown part: $(<"$TEST_TMPDIR/unknown.output")"

NO_TORCH=1 session without 120 1
[[ "$(<"$TEST_TMPDIR/without.output")" == "card.sh: $TEST_TMPDIR/bundle/peer cannot import torch: "\
"No module named torch; name a Python that has PyTorch as the third argument" ]] ||
  fail "without PyTorch: $(<"$TEST_TMPDIR/without.output")"
[[ ! -e "$TEST_TMPDIR/without" ]] || fail "a session begins without PyTorch"
exit "$failures"
