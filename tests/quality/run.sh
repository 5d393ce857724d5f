#!/usr/bin/env bash
# Trains the models of docs/quality.md, prints a line for each figure with its bound, and fails if a
# bound is missed.
#
#   tests/quality/run.sh DATA_DIR [NAME...]
#
# DATA_DIR holds adult/, frappe/, ml1m/ and criteo_10k/ with the files that the heads of the job
# files name. NAME is one of demo, demo_4m, adult, hybrid, adult_fm, adult_tasks, frappe, ml1m,
# criteo, bits. The default is all of them, which takes eight minutes on two idle cores.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
[[ $# -ge 1 && -d "$1" ]] || { sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 1; }
data="$(cd "$1" && pwd)"
shift
names=("$@")
[[ $# -gt 0 ]] || names=(demo demo_4m adult hybrid adult_fm adult_tasks frappe ml1m criteo bits)
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
missed=0

# Runs `./satrap ARGUMENTS` and leaves its report in the file $report.
run() {
  report="$work/report.json"
  if ! "$root/satrap" "$@" --report "$report" >"$work/run.log" 2>&1; then
    cat "$work/run.log" >&2
    echo "failed: ./satrap $*" >&2
    exit 1
  fi
}

train() { run train "$@"; }

# field OBJECT NAME: one number of $report, as `field test auc`; at the top level, `field "" samples`.
field() {
  perl -0777 -ne '
    BEGIN { ($object, $name) = (shift, shift) }
    $text = $_;
    if ($object ne "") { $text =~ /"$object":\{([^{}]*)\}/ or exit 1; $text = $1 }
    $text =~ /"$name":"?([^",}]*)/ or exit 1;
    print $1' "$1" "$2" "$report"
}

# judge WHAT FIGURE CONDITION: compares a figure with its bound, a Perl expression of $x.
judge() {
  local verdict=ok
  [[ -n "$2" ]] || { echo "no figure for $1 in the report" >&2; exit 1; }
  perl -e '$x = shift; exit !(eval shift)' "$2" "$3" || { verdict=MISSED; missed=1; }
  printf '%-50s %-9.6g %-7s %s\n' "$1" "$2" "$verdict" "$3"
}

calculate() { perl -e 'print eval shift' "$1"; }

lr_auc() {
  [[ -n "${lr:-}" ]] || { train demo_lr; lr="$(field test auc)"; }
}

demo() { # WHAT LEAST_GAP_CLOSED ARGUMENTS...
  local what="$1" least="$2" bayes
  lr_auc
  run demo "${@:3}"
  bayes="$(field "" bayes_auc)"
  judge "$what: Bayes AUC" "$bayes" '$x > .75 && $x < .85'
  judge "$what: LR test AUC" "$lr" "\$x <= $bayes - .05"
  judge "$what: DeepFM test AUC" "$(field test auc)" '$x > .5'
  judge "$what: gap from LR to Bayes closed" \
    "$(calculate "($(field test auc) - $lr) / ($bayes - $lr)")" "\$x >= $least"
  judge "$what: rows" "$(field "" rows)" '$x >= 50000'
}

# Sets the array `aucs` to the test AUC of seeds 1 to 5, and `mean` to their mean.
adult_seeds() {
  local seed
  aucs=()
  for seed in 1 2 3 4 5; do
    train adult_persia --set "data_root=$data/adult" --set "seed=$seed" "$@"
    aucs+=("$(field test auc)")
  done
  mean="$(calculate "($(IFS=+; echo "${aucs[*]}")) / 5")"
}

adult() {
  local workers seed one=()
  for workers in 1 2 4; do
    adult_seeds --set "nn_worker.replicas=$workers"
    [[ $workers -gt 1 ]] || one=("${aucs[@]}")
    for seed in 0 1 2 3 4; do
      judge "adult, $workers NN workers, seed $((seed + 1)): test AUC" "${aucs[seed]}" \
        "abs(\$x - ${one[seed]}) <= .001"
    done
    judge "adult, $workers NN workers: mean test AUC" "$mean" 'abs($x - .8929) <= .003'
  done
}

criteo() {
  train criteo_deepfm --set "data_root=$data/criteo_10k"
  judge "criteo: test AUC of some 1,000 rows" "$(field test auc)" '$x > .6'
  judge "criteo: quarantined" "$(field "" quarantined)" '$x == 0'
  # Damages every twentieth line, in ten ways that take turns.
  mkdir -p "$work/damaged"
  perl -ne '
    if ($. % 20 == 0) {
      chomp;
      my @f = split /\t/, $_, -1;
      my $way = $n++ % 10;
      if ($way == 0) { pop @f }
      elsif ($way == 1) { push @f, "extra" }
      elsif ($way == 2) { $f[3] = "abc" }
      elsif ($way == 3) { $f[20] = "a\0b" }
      elsif ($way == 4) { $f[0] = "2" }
      elsif ($way == 5) { $f[0] = "" }
      elsif ($way == 6) { $f[0] = "-1" }
      elsif ($way == 7) { $f[30] = "x" x (1 << 20) }
      elsif ($way == 8) { @f = ("no record at all") }
      else { $f[5] = "12-" }
      $_ = join("\t", @f) . "\n";
    }
    print' "$data/criteo_10k/train.txt" >"$work/damaged/train.txt"
  train criteo_deepfm --set "data_root=$work/damaged"
  judge "criteo, 500 of 10,000 lines damaged: quarantined" "$(field "" quarantined)" '$x == 500'
}

# Each of two tasks against its own model: the other's loss then counts for nothing.
adult_tasks() {
  local task other own
  for task in income never_married; do
    [[ "$task" == income ]] && other=never_married || other=income
    train adult_tasks --set "data_root=$data/adult" --set "model.tasks[name=$other].weight=1e-9"
    own="$(field "$task" auc)"
    train adult_tasks --set "data_root=$data/adult"
    judge "adult_tasks, $task: test AUC" "$(field "$task" auc)" "abs(\$x - $own) <= .003"
  done
}

# The saved model of a reproducible run is the same for any number of replicas.
bits() {
  local set digest first=""
  for set in embedding_ps.replicas=1 embedding_ps.replicas=4 embedding_worker.replicas=1 \
    embedding_worker.replicas=2 data_loader.replicas=1 data_loader.replicas=2; do
    run demo --set mode=SYNC --set reproducible=true --set data.synthetic.train_samples=60000 \
      --set lanes=2 --set "$set"
    digest="$(field "" model_digest)"
    [[ -n "$first" ]] || first="$digest"
    judge "bits, $set: same model" "$([[ "$digest" == "$first" ]] && echo 1 || echo 0)" '$x == 1'
  done
}

for name in "${names[@]}"; do
  case "$name" in
    demo) demo demo .60 ;;
    demo_4m) demo demo_4m .65 --set data.synthetic.train_samples=4000000 ;;
    adult) adult ;;
    hybrid)
      adult_seeds --set mode=HYBRID --set reproducible=false
      judge "adult, hybrid: mean test AUC" "$mean" 'abs($x - .8929) <= .003'
      ;;
    adult_fm)
      train adult_fm --set "data_root=$data/adult"
      judge "adult_fm: test AUC" "$(field test auc)" '$x >= .912'
      ;;
    adult_tasks) adult_tasks ;;
    frappe)
      train frappe_deepfm --set "data_root=$data/frappe"
      judge "frappe_deepfm: best validation AUC" "$(field valid auc)" '$x >= .975'
      ;;
    ml1m)
      train ml1m_fm --set "data_root=$data/ml1m"
      judge "ml1m_fm: best validation AUC" "$(field valid auc)" '$x >= .87'
      ;;
    criteo) criteo ;;
    bits) bits ;;
    *)
      echo "no such name: $name" >&2
      exit 1
      ;;
  esac
done
exit "$missed"
