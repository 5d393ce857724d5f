#!/usr/bin/env bash
# A session on a machine with a GPU: tests, the dense step beside PyTorch's, kernels, a job and
# compute-sanitizer, what shows most first, within a given time.
#
#   tests/benchmark/card.sh FOLDER [SECONDS] [PYTHON]
#
# It belongs to a bundle of `./satrap bundle --cuda --tests`. FOLDER gets the output of each part in
# a file, and summary.txt, which ends with the table of the dense step. SECONDS, 780 unless given,
# bounds everything: what would begin later is skipped, and the summary says so. PYTHON, python3
# unless given, has PyTorch, or the session ends at once; CUDA's libraries are taken from its
# packages. Exits with 1 if a part failed or did not finish.
set -uo pipefail
folder="${1:?card.sh: name a folder for the output}"
deadline="${2:-780}"
python="${3:-python3}"
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
failures=0

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
  [[ $status -eq 0 ]] || failures=1
  case $status in
    0) note "$name" "passed in $((SECONDS - begin)) s$(skipped_tests "$name")" ;;
    124 | 137) note "$name" "not finished in $limit s" ;;
    *) note "$name" "failed with $status" ;;
  esac
}

# The number of skipped tests, as GoogleTest counts them at its end.
skipped_tests() {
  sed -n 's/^\[  SKIPPED \] \([0-9]* tests\?\).*/, \1 skipped/p' "$folder/$1.txt"
}

run_test() { part "${1##*/}" "$2" ./satrap exec "$1"; }

# Fills PyTorch's cache: compiling takes longer than measuring.
compile_peer() {
  local precision limit
  for precision in BF16 TF32 F32; do
    limit="$(at_most 120)"
    [[ $limit -gt 0 ]] || break
    timeout --kill-after=10 "$limit" "$python" tests/benchmark/pytorch_step.py \
      "--precision=$precision" --seconds=0.01
  done >"$folder/peer_compile.txt" 2>&1
}

# Ours and the peer, in turn, for every configuration.
measure_steps() {
  local model batch precision flags
  for precision in BF16 TF32 F32; do
    for batch in 131072 65536 8192; do
      for model in deepfm dlrm; do
        if [[ $SECONDS -ge $deadline ]]; then
          note "steps" "skipped from $model, $batch, $precision on: the time is up"
          return
        fi
        flags=("--model=$model" "--batch=$batch" "--precision=$precision" --seconds=2)
        part "step_${model}_${batch}_$precision" 60 \
          ./satrap exec nn_worker/models/step_benchmark_cuda "${flags[@]}"
        part "peer_${model}_${batch}_$precision" 90 \
          "$python" tests/benchmark/pytorch_step.py "${flags[@]}"
      done
    done
  done
}

# DeepFM with the shape of CowClip's paper through all services: batch 131,072, dim 10.
train_job() {
  part "job_$1" 110 ./satrap bench deepfm --seconds=20 --warmup_seconds=10 "--precision=$1" \
    --set nn_worker.device=CUDA --set global_batch_size=131072 \
    --set data.synthetic.cycle_batches=8 \
    --set 'tables[name=features].segments[name=embedding].dim=10'
}

# A death test starts the program again, and compute-sanitizer hangs after that.
sanitize() {
  local tool test
  for test in nn_worker/device/cuda/cuda_device_test nn_worker/backend/testing/cuda_conformance_test; do
    for tool in memcheck racecheck; do
      part "${tool}_${test##*/}" 60 compute-sanitizer "--tool=$tool" --error-exitcode=1 \
        ./satrap exec "$test" '--gtest_filter=-*DeathTest.*'
    done
  done
}

# Medians of all lines of a configuration; of the peer's settings the fastest one.
print_table() {
  "$python" - "$folder" <<'PY'
import collections, glob, json, statistics, sys
rates = collections.defaultdict(list)
folder = sys.argv[1]
for path in glob.glob(folder + "/step_*.txt") + glob.glob(folder + "/peer_*_*_*.txt"):
    for line in open(path, errors="replace"):
        f = json.loads(line) if line.startswith('{"benchmark":') else {}
        if f.get("benchmark") == "step":
            configuration = f["model"], f["batch"], f["precision"]
            rates[configuration, f.get("compile", "Satrap")].append(f["samples_per_second"])
medians = {key: statistics.median(values) for key, values in rates.items()}
print("model      batch precision   Satrap, samples/s  PyTorch, samples/s  ratio")
for configuration in sorted({configuration for configuration, _ in medians}):
    of = {who: rate for (key, who), rate in medians.items() if key == configuration}
    ours = of.pop("Satrap", 0)
    peer = max(of.values(), default=0)
    ratio = f"{ours / peer:.2f}" if ours and peer else "-"
    model, batch, precision = configuration
    print(f"{model:8}{batch:8} {precision:10}{ours:19,.0f}{peer:20,.0f}{ratio:>7}")
PY
}

packages="$("$python" -c 'import glob, site
folders = [glob.glob(packages + "/nvidia/*/lib") for packages in site.getsitepackages()]
print(":".join(sum(folders, [])))')"
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$packages"

part card 20 nvidia-smi
run_test nn_worker/device/cuda/cuda_device_test 60
compile_peer &
compiling=$!
run_test nn_worker/device/cuda/cublaslt_plan_test 60
run_test nn_worker/backend/testing/cuda_conformance_test 150
run_test nn_worker/models/cuda_training_test 90
run_test nn_worker/layer/cuda_layer_test 90
run_test nn_worker/collective/nccl_collective_test 60
wait "$compiling"
measure_steps
part kernels 90 ./satrap exec nn_worker/backend/benchmark/kernel_benchmark_cuda
train_job bf16
train_job f32
sanitize
part peer_deepfm_131072_BF16_tuned 150 "$python" tests/benchmark/pytorch_step.py --model=deepfm \
  --batch=131072 --precision=BF16 --seconds=2 --compile=max-autotune
measure_steps
print_table 2>&1 | tee -a "$summary"
exit "$failures"
