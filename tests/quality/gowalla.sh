#!/usr/bin/env bash
# Trains a retrieval job on Gowalla with a seeded tenth of each user's items held out, ranks all items
# for each user, and prints the metrics of that ranking and of popularity's as one line of JSON.
#
#   tests/quality/gowalla.sh SATRAP DATA_DIR WORK_DIR JOB SEED [--set FIELD=VALUE]...
#
# SATRAP runs the command line (./satrap), DATA_DIR holds train.txt.gz, WORK_DIR gets the data, the
# run and the vectors. JOB is gowalla_youtubednn or gowalla_two_tower.
set -euo pipefail
[[ $# -ge 5 ]] || { sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 1; }
here="$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")"
read -r -a satrap <<<"$1"
work="$3" job="$4" seed="$5" data="$3/data_$5"

[[ -d "$data" ]] || python3 -B "$here/gowalla_data.py" "$2" "$data" "$seed" >&2
rm -rf "$work/run"
"${satrap[@]}" train "$job" --run_dir "$work/run" --set "data_root=$data" --set "seed=$seed" \
  "${@:6}" >&2
for side in user item; do
  "${satrap[@]}" predict "$work/run" "$data/${side}s.tsv" --output "${side}_vector" \
    --output_file "$work/$side.vectors" >&2
done
cut -f 2 "$data/items.tsv" >"$work/items.txt"
"${satrap[@]}" retrieve "$work/user.vectors" "$work/item.vectors" --users "$data/users.tsv" \
  --items "$work/items.txt" --relevant "$data/held_out.tsv" --seen "$data/train.tsv" \
  --popularity "$data/train.tsv" --json
