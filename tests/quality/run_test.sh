#!/usr/bin/env bash
# run.sh with a satrap that only writes a report: what is run, skipped and missed, and the exit code.
set -euo pipefail
run="$(readlink -f tests/quality/run.sh)"
cd "$TEST_TMPDIR"
mkdir -p data/frappe data/adult bin
export PATH="$TEST_TMPDIR/bin:$PATH"

# Writes report.txt as the report of the run, and its arguments into commands.txt. `retrieve` prints a ranking.
cat >satrap <<'END'
#!/usr/bin/env bash
here="$(dirname "$0")"
echo "$*" >>"$here/commands.txt"
[[ "$1" != retrieve ]] || cat "$here/ranking.txt"
[[ "$1" == train ]] || exit 0
while [[ $# -gt 0 && "$1" != --run_dir ]]; do shift; done
mkdir -p "$2"
cp "$here/report.txt" "$2/report.json"
END
printf '#!/usr/bin/env bash\nexit "$(cat "%s/bazel_exit.txt")"\n' "$TEST_TMPDIR" >bin/bazel
chmod +x satrap bin/bazel
echo 0 >bazel_exit.txt
failures=0

# $1: expected exit code; further arguments: those of run.sh. Leaves what it prints in said.txt.
run() {
  local expected="$1" code=0
  : >commands.txt
  "$run" "${@:2}" --satrap "$TEST_TMPDIR/satrap" >said.txt 2>&1 || code=$?
  [[ $code -eq $expected ]] || fail "run.sh ${*:2}: exit code $code instead of $expected"
}

fail() {
  echo "$1"
  cat said.txt
  failures=1
}

expect() { grep -qF -- "$2" "$1" || fail "$1 lacks: $2"; }

echo '{"valid":{"auc":0.98}}' >report.txt
run 0 fast --data data --only frappe_fm
expect commands.txt "train frappe_fm --run_dir"
expect commands.txt "--set seed=1 --set data_root=$TEST_TMPDIR/data/frappe"
[[ "$(wc -l <commands.txt)" -eq 1 ]] || fail "the fast tier trains one seed"
expect said.txt "frappe_fm: best validation AUC"
expect said.txt ">= 0.969"
expect said.txt "1 passed, 0 missed, 0 checks skipped"

run 0 full --data data --only frappe_fm --only frappe_lr
expect commands.txt "--set seed=3"
expect said.txt "best validation AUC, mean"
expect said.txt "seed 1,2,3"

echo '{"valid":{"auc":0.9689}}' >report.txt
run 1 fast --data data --only frappe_fm
expect said.txt "MISSED"
expect said.txt "0 passed, 1 missed"
# A missed gate does not end the rest.
run 1 full --data data --only frappe_fm --only frappe_lr
expect said.txt "ok      frappe_lr"

# Figures that are missing, or are not numbers.
echo '{"valid":{"auc":null}}' >report.txt
run 1 fast --data data --only frappe_lr
expect said.txt "the report has no valid.auc"
echo 'no JSON' >report.txt
run 1 fast --data data --only frappe_lr
expect said.txt "no report"

# A command that fails.
printf '#!/usr/bin/env bash\necho reason >&2\nexit 3\n' >failing
chmod +x failing
"$run" fast --data data --only frappe_lr --satrap "$TEST_TMPDIR/failing" >said.txt && fail "it passed"
expect said.txt "exit code 3: reason"

# Data that is missing.
run 0 fast --data data --only ml100k_svd
expect said.txt "skipped ml100k_svd: --data has no folder ml100k"
run 0 fast --only adult_fm
expect said.txt "skipped adult_fm"
expect said.txt "0 passed, 0 missed, 1 checks skipped"

# A difference of two runs is judged as one figure; each run is of the same seed.
echo '{"test":{"tasks":{"income":{"auc":0.9},"never_married":{"auc":0.95}}}}' >report.txt
run 0 fast --data data --only adult_tasks
[[ "$(wc -l <commands.txt)" -eq 3 ]] || fail "both tasks, and each alone"
expect said.txt "2 passed"

# Bazel's tests.
run 0 fast --only dlrm_golden
echo 3 >bazel_exit.txt
run 1 fast --only dlrm_golden

# Retrieval: what is trained, what is predicted, and what is ranked.
mkdir -p work/data_7
printf '0\t48\t1\t2\n' >work/data_7/items.tsv
echo '{"rankings":[{"ranking":"vectors","k":20,"recall":0.15}]}' >ranking.txt
: >commands.txt
"${run%run.sh}gowalla.sh" "$TEST_TMPDIR/satrap" data/gowalla work gowalla_two_tower 7 \
  --set epochs=2 >said.txt
expect said.txt '"recall":0.15'
expect commands.txt "train gowalla_two_tower --run_dir work/run --set data_root=work/data_7 --set seed=7 --set epochs=2"
expect commands.txt "predict work/run work/data_7/users.tsv --output user_vector"
expect commands.txt "predict work/run work/data_7/items.tsv --output item_vector"
expect commands.txt "--relevant work/data_7/held_out.tsv --seen work/data_7/train.tsv"
expect work/items.txt 48

# Tiers, checks and folders that do not exist.
run 2 slow
run 2 fast --only frappe_dcn
expect said.txt "the tier fast has no check frappe_dcn"
run 2 full --data nowhere
run 0 full --list
expect said.txt "cowclip"

exit "$failures"
