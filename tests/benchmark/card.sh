#!/usr/bin/env bash
# A session on a machine with a GPU: tests, the dense step beside PyTorch's, kernels, a job and
# compute-sanitizer, what shows most first, within a given time.
#
#   tests/benchmark/card.sh FOLDER [SECONDS [PYTHON [PART...]]]
#
# It belongs to a bundle of `./satrap bundle --cuda --tests`. FOLDER gets the output of each part in
# a file, summary.txt, which ends with what must be shown, and everything.txt, which holds all the
# others. SECONDS, 780 unless given, bounds everything: what would begin later is skipped, and the
# summary says so. PYTHON, python3 unless given, has PyTorch, or the session ends at once; CUDA's
# libraries are taken from its packages. PARTs, all of them unless given, run in this order:
#
#   tests       all tests, side by side
#   steps       both models with batch 131,072 in BF16, beside PyTorch
#   kernels     each operation's share of its ceiling
#   job         DeepFM with the shape of CowClip's paper through all services, in BF16
#   algorithms  the algorithms of cuBLASLt for the shapes of the models
#   profile     which operations a step runs, and how long each takes
#   sanitize    memcheck and racecheck over every kernel
#   rest        the other batches and precisions of both models, beside PyTorch
#   more        the job in F32, memcheck over the tests, PyTorch with max-autotune
#
# What was not finished in its own time is run again in the time that is left. Exits with 1 if a part
# failed or did not finish.
set -uo pipefail
folder="${1:?card.sh: name a folder for the output}"
deadline="${2:-780}"
python="${3:-python3}"
all_parts=(tests steps kernels job algorithms profile sanitize rest more)
chosen=("${@:4}")
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${all_parts[@]}")
for name in "${chosen[@]}"; do
  [[ " ${all_parts[*]} " == *" $name "* ]] ||
    { echo "card.sh: there is no part '$name'; there are ${all_parts[*]}" >&2; exit 1; }
done
[[ "$python" != */* || "$python" == /* ]] || python="$PWD/$python"
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." || exit 1
[[ "$folder" == /* ]] || folder="$OLDPWD/$folder"
if ! error="$("$python" -c 'import torch' 2>&1)"; then
  echo "card.sh: $python cannot import torch: ${error##*$'\n'}; name a Python that has PyTorch" \
    "as the third argument" >&2
  exit 1
fi
mkdir -p "$folder"
summary="$folder/summary.txt"
: >"$summary"
# Names, of parts in subshells, too. A missed part has the command that runs it again.
failed="$(mktemp)"
missed="$(mktemp)"

is_chosen() { [[ " ${chosen[*]} " == *" $1 "* ]]; }

note() { printf '%4d s  %-34s %s\n' "$SECONDS" "$1" "$2" | tee -a "$summary"; }

# Prints $1, or the seconds that are left if those are fewer.
at_most() {
  local left=$((deadline - SECONDS))
  echo $(($1 < left ? $1 : left))
}

# Runs a command for at most $2 seconds; its output goes to the file of $1.
part() {
  local name="$1" limit begin=$SECONDS status=0
  limit="$(at_most "$2")"
  shift 2
  if [[ $limit -le 0 ]]; then
    note "$name" "skipped: the time is up"
    return
  fi
  timeout --kill-after=10 "$limit" "$@" >>"$folder/$name.txt" 2>&1 </dev/null || status=$?
  case $status in
    0) note "$name" "passed in $((SECONDS - begin)) s$(skipped_tests "$name")" ;;
    124 | 137)
      note "$name" "not finished in $limit s"
      echo "part $name 10000$(printf ' %q' "$@")" >>"$missed"
      ;;
    *)
      note "$name" "failed with $status"
      echo "$name" >>"$failed"
      ;;
  esac
}

# The number of skipped tests, as GoogleTest counts them at its end.
skipped_tests() {
  sed -n 's/^\[  SKIPPED \] \([0-9]* tests\?\).*/, \1 skipped/p' "$folder/$1.txt"
}

# Fills PyTorch's cache for batch $1 in the precisions that follow, since compiling takes longer than
# measuring. A process for each model.
compile_peers() {
  local batch="$1" model precision limit
  shift
  limit="$(at_most 150)"
  [[ $limit -gt 0 ]] || return
  for precision in "$@"; do
    for model in deepfm dlrm; do
      timeout --kill-after=10 "$limit" "$python" tests/benchmark/pytorch_step.py "--model=$model" \
        "--batch=$batch" "--precision=$precision" --seconds=0.01 </dev/null &
    done
  done >>"$folder/peer_compile.txt" 2>&1
  wait
}

run_tests() {
  local test
  for test in device/cuda/cuda_device device/cuda/cublaslt_plan backend/testing/cuda_conformance \
    trainer/testing/cuda_training layer/cuda_layer collective/nccl_collective; do
    part "${test##*/}_test" 120 ./satrap exec "nn_worker/${test}_test" &
  done
  ! is_chosen steps || compile_peers 131072 BF16 &
  wait
}

# Ours and the peer, in turn. $1: the precision; $2: seconds of each measurement; then batches.
measure_steps() {
  local model batch precision="$1" seconds="$2" flags
  shift 2
  for batch in "$@"; do
    for model in deepfm dlrm; do
      if [[ $SECONDS -ge $deadline ]]; then
        note "steps" "skipped from $model, $batch, $precision on: the time is up"
        return 1
      fi
      flags=("--model=$model" "--batch=$batch" "--precision=$precision" "--seconds=$seconds")
      part "step_${model}_${batch}_$precision" 60 \
        ./satrap exec nn_worker/backend/benchmark/step_benchmark_cuda "${flags[@]}"
      part "peer_${model}_${batch}_$precision" 90 \
        "$python" tests/benchmark/pytorch_step.py "${flags[@]}"
    done
  done
}

measure_rest() {
  measure_steps BF16 1 65536 8192 && measure_steps TF32 1 131072 && measure_steps F32 1 131072 &&
    measure_steps TF32 1 65536 8192 && measure_steps F32 1 65536 8192
}

# DeepFM with the shape of CowClip's paper through all services: batch 131,072, dim 10.
train_job() {
  part "job_$1" 110 ./satrap bench deepfm --seconds=20 --warmup_seconds=10 "--precision=$1" \
    --set nn_worker.device=CUDA --set global_batch_size=131072 \
    --set data.synthetic.cycle_batches=8 \
    --set 'tables[name=features].segments[name=embedding].dim=10'
}

# The program prints a source, which thus has a file without the times.
time_algorithms() {
  rm -f "$folder/algorithms.txt"
  part algorithms 60 bash -c \
    './satrap exec nn_worker/backend/benchmark/algorithm_table_cuda --seconds=30 2>>"$0"' \
    "$folder/algorithm_times.txt"
}

# Without graphs, so that each operation is seen by itself. The benchmark's own times have the gaps
# between operations in them. ncu's are those of the kernels alone, but not every machine permits them.
profile_steps() {
  local model batch flags
  for batch in 131072 8192; do
    for model in deepfm dlrm; do
      flags=("--model=$model" "--batch=$batch" --precision=BF16)
      part "profile_${model}_$batch" 30 \
        ./satrap exec nn_worker/backend/benchmark/step_benchmark_cuda "${flags[@]}" --profile
      command -v ncu >/dev/null || continue
      part "ncu_${model}_$batch" 40 ncu --metrics gpu__time_duration.sum --clock-control none \
        --print-summary per-kernel --target-processes all --launch-skip 300 --launch-count 200 \
        ./satrap exec nn_worker/backend/benchmark/step_benchmark_cuda "${flags[@]}" \
        --capture=false --seconds=0
    done
  done
}

# Every kernel once on small shapes. Kernels of the libraries are left out by name: they are not ours,
# and instrumenting them takes most of the time.
# Runs compute-sanitizer's tool $1 over every kernel of ours, with further flags of the benchmark.
sanitize_kernels() {
  compute-sanitizer "--tool=$1" --error-exitcode=1 --kernel-name kns=satrap \
    ./satrap exec nn_worker/backend/benchmark/kernel_benchmark_cuda --small "${@:2}"
}
export -f sanitize_kernels

# racecheck loses a product of cuBLASLt in TF32, whose kernels of ours are those of F32. So each
# precision is a part of its own, and TF32 is left out.
sanitize() {
  local precision
  part memcheck 90 bash -c 'sanitize_kernels memcheck' &
  for precision in F32 BF16 F16; do
    part "racecheck_$precision" 90 bash -c "sanitize_kernels racecheck --precision=$precision" &
  done
  ! is_chosen rest || {
    compile_peers 65536 BF16 TF32 F32
    compile_peers 8192 BF16 TF32 F32
    compile_peers 131072 TF32 F32
  } &
  wait
}

# A death test starts the program again, and compute-sanitizer hangs after that.
run_more() {
  local test
  train_job f32
  for test in device/cuda/cuda_device backend/testing/cuda_conformance; do
    part "memcheck_${test##*/}_test" 120 compute-sanitizer --tool=memcheck --error-exitcode=1 \
      ./satrap exec "nn_worker/${test}_test" '--gtest_filter=-*DeathTest.*'
  done
  part peer_deepfm_131072_BF16_tuned 150 "$python" tests/benchmark/pytorch_step.py --model=deepfm \
    --batch=131072 --precision=BF16 --seconds=2 --compile=max-autotune
}

run_missed() {
  local line again=()
  mapfile -t again <"$missed"
  [[ ${#again[@]} -gt 0 && $SECONDS -lt $deadline ]] || return
  : >"$missed"
  for line in "${again[@]}"; do
    eval "$line"
  done
}

# What must be shown: for each configuration the medians of all its lines and the fastest of the
# peer's settings; and operations of a model's step that take over 2 % of it, but have under 40 % of
# their ceiling.
print_results() {
  "$python" - "$folder" <<'PY'
import collections, glob, json, statistics, sys
folder = sys.argv[1]

def lines(pattern, name):
    for path in glob.glob(folder + "/" + pattern):
        for line in open(path, errors="replace"):
            try:
                f = json.loads(line) if line.startswith("{") else {}
            except ValueError:
                continue  # of a program that was ended
            if f.get("benchmark") == name:
                yield f

rates = collections.defaultdict(list)
for pattern in ("step_*.txt", "peer_*_*_*.txt"):
    for f in lines(pattern, "step"):
        configuration = f["model"], f["batch"], f["precision"]
        rates[configuration, f.get("compile", "Satrap")].append(f["samples_per_second"])
medians = {key: statistics.median(values) for key, values in rates.items()}

def goal(model, batch, precision):
    share = {"BF16": .728 if model == "deepfm" else .736, "TF32": .85, "F32": 1}.get(precision)
    most_us = {"deepfm": 1900, "dlrm": 4800}[model] if (batch, precision) == (131072, "BF16") else None
    return (None, None) if batch < 65536 else (share, most_us)

print("model      batch precision   Satrap, us  PyTorch, us  share  goal")
step_us = {}
for configuration in sorted({configuration for configuration, _ in medians}):
    of = {who: rate for (key, who), rate in medians.items() if key == configuration}
    model, batch, precision = configuration
    ours, peer = of.pop("Satrap", 0), max(of.values(), default=0)
    ours_us, peer_us = (1e6 * batch / rate if rate else 0 for rate in (ours, peer))
    step_us[configuration] = ours_us
    share = peer / ours if ours else 0
    most_share, most_us = goal(*configuration)
    wanted = []
    if most_us:
        wanted.append(f"{most_us} us: " + ("met" if 0 < ours_us <= most_us else "MISSED"))
    if most_share:
        met = "not measured" if not ours or not peer else "met" if share <= most_share else "MISSED"
        wanted.append(f"{most_share:.2f}: {met}")
    shown = f"{share:.2f}" if ours and peer else "-"
    print(f"{model:8}{batch:8} {precision:10}{ours_us:12,.0f}{peer_us:13,.0f}{shown:>7}  "
          f"{', '.join(wanted) or '-'}")

# The operations of each model's step, with their shapes.
step_operations = {
    "deepfm": {
        "GatherRows": ["26 of 16, and 1 for the linear part"],
        "ScatterGradients": ["26 of 16, and 1 for the linear part"],
        "Fm": ["26 of n x 16"],
        "FmGrad": ["26 of n x 16"],
        "LinearForward": ["429 x 400, ReLU", "400 x 400, ReLU", "400 x 1"],
        "LinearBackward": ["429 x 400, ReLU", "400 x 400, ReLU", "400 x 1"],
        "ReluAndBiasGradient": ["n x 400, in place"],
    },
    "dlrm": {
        "GatherRows": ["26 of 16"],
        "ScatterGradients": ["26 of 16"],
        "PairDots": ["27 of n x 16"],
        "PairDotsGrad": ["27 of n x 16"],
        "LinearForward": ["1024 x 1024, ReLU", "1024 x 512, ReLU"],
        "LinearBackward": ["1024 x 1024, ReLU", "1024 x 512, ReLU"],
    },
}

# What moves whole sectors is judged by them.
def share_of(f):
    return f.get("sector_share") or f["share"]

for precision in ("BF16", "TF32", "F32"):
    for model, operations in step_operations.items():
        step = min((us * 65536 / batch for (of, batch, used), us in step_us.items()
                    if (of, used) == (model, precision) and batch >= 65536 and us), default=0)
        slow = [f for f in lines("kernels.txt", "kernel")
                if step and f["precision"] == precision and share_of(f) < .4
                and f["what"] in operations.get(f["operation"], []) and f["us"] > .02 * step]
        if not slow:
            continue
        print(f"{model}, {precision}: under 40 % of the ceiling and over 2 % of a step of "
              f"{step:.0f} us:")
        for f in sorted(slow, key=lambda f: -f["us"]):
            print(f"  {f['us']:9.1f} us {share_of(f):6.1%}  {f['operation']}, {f['what']}")
PY
}

finish() {
  local file
  print_results 2>&1 | tee -a "$summary"
  rm -f "$folder/everything.txt"
  for file in "$folder"/*.txt; do
    printf '==== %s\n' "${file##*/}"
    tail -c 400000 "$file"
  done >"$folder/everything"
  mv "$folder/everything" "$folder/everything.txt"
  local status=0
  [[ ! -s "$failed" && ! -s "$missed" ]] || status=1
  rm -f "$failed" "$missed"
  exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM

packages="$("$python" -c 'import glob, site
folders = [glob.glob(packages + "/nvidia/*/lib") for packages in site.getsitepackages()]
print(":".join(sum(folders, [])))')"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$packages"

part card 20 nvidia-smi
for name in "${all_parts[@]}"; do
  is_chosen "$name" || continue
  case "$name" in
    tests) run_tests ;;
    steps) measure_steps BF16 2 131072 ;;
    kernels) part kernels 90 ./satrap exec nn_worker/backend/benchmark/kernel_benchmark_cuda ;;
    job) train_job bf16 ;;
    algorithms) time_algorithms ;;
    profile) profile_steps ;;
    sanitize) sanitize ;;
    rest) measure_rest ;;
    more) run_more ;;
  esac
done
run_missed
