#!/bin/bash
# gowalla_data.py: each pair is trained or held out, a history never holds the record's own item, and the seed
# decides.
set -euo pipefail
script=tests/quality/gowalla_data.py
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/in"
{
  echo "0 $(seq -s ' ' 100 149)"  # 50 items: 5 are held out
  echo "1 $(seq -s ' ' 100 104)"  # 5: at least one
  echo "2 7"                      # its only pair has no history, so it is no record
  echo "3"
} | gzip > "$dir/in/train.txt.gz"
python3 "$script" "$dir/in" "$dir/a" 1
python3 "$script" "$dir/in" "$dir/again" 1
python3 "$script" "$dir/in" "$dir/b" 2

fail() { echo "FAIL: $*" >&2; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: $2, not $3"; }
expect "held out" "$(wc -l < "$dir/a/held_out.tsv")" 6
expect "held out of user 1" "$(grep -c '^1	' "$dir/a/held_out.tsv")" 1
expect "records" "$(wc -l < "$dir/a/train.tsv")" $((45 + 4))
expect "users" "$(wc -l < "$dir/a/users.tsv")" 3
expect "pairs in training and held out" \
  "$(cut -f1,2 "$dir/a/train.tsv" | sort | comm -12 - <(sort "$dir/a/held_out.tsv") | wc -l)" 0
expect "items of training, user 2's among them" "$(wc -l < "$dir/a/items.tsv")" \
  "$({ cut -f2 "$dir/a/train.tsv"; echo 7; } | sort -u | wc -l)"
awk -F'\t' '{ n = split($4, h, "|"); if (n < 1 || n > 30) exit 1
              for (i = 1; i <= n; ++i) if (h[i] == $2) exit 1 }' "$dir/a/train.tsv" ||
  fail "a history holds the record's own item, none, or more than 30"
diff -r "$dir/a" "$dir/again" || fail "the same seed gives other files"
! cmp -s "$dir/a/held_out.tsv" "$dir/b/held_out.tsv" || fail "another seed holds out the same"
