#!/usr/bin/env bash
# draw.py finds what people read in a small checkout, and draws the same of it again.
set -euo pipefail
checkout="$TEST_TMPDIR/checkout"
mkdir -p "$checkout/common/base"
cat >"$checkout/common/base/gate.cc" <<'CC'
// Opens the gate for everybody
// who waits at it.
int Open() {
  // Too short.
  return Fail(absl::StrCat("the gate ", name, " is closed: ",
                           "open it with a key"));
}
CC
printf 'TEST(Gate, Opens) { Say("this is no message of the product"); }\n' >"$checkout/common/base/gate_test.cc"
printf '# A heading of several words here\n\nA gate lets one\nafter another pass.\n\n    command with some more words\n' >"$checkout/README.md"
git -C "$checkout" init -q
git -C "$checkout" add .
expected='== comments: 1 of 1

1. common/base/gate.cc:1
// Opens the gate for everybody
// who waits at it.

== messages: 1 of 1

2. common/base/gate.cc:5
the gate  ...  is closed:  ... open it with a key

== paragraphs: 1 of 1

3. README.md:3
A gate lets one
after another pass.'
got="$(python3 tests/style/draw.py "$checkout" --seed 1)"
if [[ "$got" != "$expected" ]]; then
  printf 'prints\n%s\n' "$got"
  exit 1
fi
for number in 1 2 3 4 5 6 7 8; do
  printf '\n// A comment of more words, number %s\nint i;\n' "$number" >>"$checkout/common/base/gate.cc"
done
draw() { python3 tests/style/draw.py "$checkout" --seed "$1" --comments 3; }
[[ "$(draw 1)" == "$(draw 1)" ]] || { echo 'one seed draws twice'; exit 1; }
[[ "$(draw 1)" != "$(draw 2)" ]] || { echo 'two seeds draw the same'; exit 1; }
