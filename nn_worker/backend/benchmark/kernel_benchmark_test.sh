#!/usr/bin/env bash
# The kernel benchmark on the host's device, with a few samples: each operation of a Backend that enqueues
# work has a row, each row has its figures, and misuse is answered by one message.
set -euo pipefail
folder=nn_worker/backend
program="$folder/benchmark/kernel_benchmark"
lines="$TEST_TMPDIR/lines"
errors="$TEST_TMPDIR/errors"
failures=0

# Prints its arguments as what is wrong.
wrong() {
  echo "$*"
  failures=1
}

"./$program" --batch=3 >"$lines"
operations="$(cat "$folder"/{backend,linear_operations,loss_operations,interaction_operations,step_operations}.h |
  sed -n 's/^  virtual void \([A-Z][A-Za-z0-9]*\)(.*/\1/p')"
[[ "$(wc -l <<<"$operations")" -gt 40 ]] || wrong "finds the operations of Backend: $operations"
for operation in $operations; do
  grep -q "^{.*\"operation\":\"$operation\"," "$lines" ||
    wrong "$operation has no row: add it to the tables of $folder/benchmark"
done
for row in '"operation":"Copy ceiling"' '"operation":"Product ceiling".*"precision":"BF16"' \
  '"what":"429 x 400, weight gradient","precision":"F16"' \
  '"operation":"Fm",.*"precision":"BF16","batch":3,.*"bytes":2694,.*"ceiling":"copy"'; do
  grep -q "^{.*$row" "$lines" || wrong "there is no row with $row"
done
rows="$(grep -c '^{' "$lines")"
table="$(sed '1,/^$/d' "$lines" | wc -l)"
[[ "$table" -eq $((rows + 1)) ]] || wrong "the table has $table lines for $rows rows and a heading"
! grep -E '"(us|share)":(-|0,|[a-z])' "$lines" || wrong "rows without a time or share"

# $1: the message; the rest: the arguments that it answers.
refused() {
  local message="$1"
  shift
  ! "./$program" "$@" >"$lines" 2>"$errors" || wrong "takes $*"
  [[ "$(wc -l <"$errors")" -eq 1 ]] && grep -qF -- "$message" "$errors" ||
    wrong "says of $*: $(cat "$errors")"
}
refused "unknown flag --bach; did you mean --batch?" --bach=3
refused "--precision F8 is not one of F32, TF32, BF16, F16" --precision F8
refused "no row matches --only=NoSuchKernel" --only=NoSuchKernel
refused "--precision=TF32 is for cards" --precision=TF32

"./$program" --batch=3 --small --only=ColumnSum --precision=BF16 >"$lines"
[[ "$(grep -c '^{' "$lines")" -eq 3 ]] || wrong "--only measures more than it says: $(cat "$lines")"
exit "$failures"
