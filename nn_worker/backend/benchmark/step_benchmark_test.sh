#!/usr/bin/env bash
# The benchmark prints its line, and says in one line what it does not take. $1: the program. Without a
# card, that of the cards says what is missing instead.
set -euo pipefail
program="./$1"
failures=0
fail() { echo "step_benchmark_test: $*"; failures=1; }

# Runs the benchmark of DeepFM on a few samples, as far as the arguments say nothing else.
bench() {
  local flag flags=("$@")
  for flag in --model=deepfm --batch=16 --precision=F32 --seconds=0.1; do
    [[ "$*" == *"${flag%%=*}="* ]] || flags+=("$flag")
  done
  "$program" "${flags[@]}"
}

expect_refused() {  # $1: the exit code; $2: in the message; the other arguments are the benchmark's
  local code="$1" words="$2" said status=0
  shift 2
  said="$("$program" "$@" 2>&1)" || status=$?
  [[ $status -eq $code && "$said" == *"$words"* && $(wc -l <<<"$said") -eq 1 ]] ||
    fail "$*: exits with $status and says: $said"
}
expect_refused 2 "unknown flag --batches; did you mean --batch?" --batches=16
expect_refused 2 "--model is given twice" --model=dlrm --model=deepfm
for flag in --model=lr --batch=0 --batch=many --precision=F8 --seconds=-1 --capture=2 --card=-1; do
  expect_refused 2 "${flag/=/ } is not " "$flag"
done

if [[ "$1" == *_cuda ]] && ! bench >/dev/null 2>"$TEST_TMPDIR/said"; then
  grep -q '^step_benchmark: cannot train on' "$TEST_TMPDIR/said" ||
    fail "without a card: $(cat "$TEST_TMPDIR/said")"
  exit "$failures"
fi
if [[ "$1" == *_cuda ]]; then
  "$program" --model=deepfm --batch=16 --precision=BF16 --profile >"$TEST_TMPDIR/profile"
  grep -Eq '^ +[0-9.]+ us +[0-9.]+% +1 times  .*StepKernel' "$TEST_TMPDIR/profile" ||
    fail "the profile names no step of the optimizer: $(cat "$TEST_TMPDIR/profile")"
else
  expect_refused 1 "TF32 needs a card: run step_benchmark_cuda" --precision=TF32
  expect_refused 1 "--profile needs a card: run step_benchmark_cuda" --profile
fi

for options in "" "--capture=false" "--precision=BF16" "--precision=F16" "--model=dlrm"; do
  # Of one blank-free option, or none.
  # shellcheck disable=SC2086
  bench $options >"$TEST_TMPDIR/line" || fail "'$options' exits with $?"
  python3 - "$options" "$TEST_TMPDIR/line" <<'PY' || fail "'$options': $(cat "$TEST_TMPDIR/line")"
import json, sys
options, path = sys.argv[1:]
lines = open(path).read().splitlines()
assert len(lines) == 1
figures = json.loads(lines[0])
for name in ("samples_per_second", "us_per_step", "windows", "rows", "device_memory_bytes"):
    assert figures[name] > 0, name
assert (figures["graph_launches"] > 0) == ("false" not in options)
assert figures["benchmark"] == "step" and figures["batch"] == 16
assert 0 <= figures["loss"] < figures["first_loss"]
PY
done
exit "$failures"
