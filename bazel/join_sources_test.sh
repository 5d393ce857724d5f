#!/usr/bin/env bash
# Sources with the same names in their unnamed namespaces are compiled together, and an error names the
# line and the file that it is in.
set -euo pipefail
join="$PWD/bazel/join_sources.sh"
cd "$TEST_TMPDIR"
for number in 1 2; do
  cat >"value$number.cc" <<CC
namespace satrap {
namespace {

constexpr int kValue = $number;

int Value() { return kValue; }

}  // namespace

namespace {

int Twice$number() { return 2 * Value(); }

}  // namespace

int ReadValue$number() { return Twice$number(); }
}  // namespace satrap
CC
done
cat >main.cc <<'CC'
namespace satrap {
int ReadValue1();
int ReadValue2();
}  // namespace satrap

int main() { return satrap::ReadValue1() == 2 && satrap::ReadValue2() == 4 ? 0 : 1; }
CC
"$join" unit.cc value1.cc value2.cc main.cc
g++ -Wall -Wextra -Werror unit.cc -o program
./program

# Expects that the second source is refused at the line that names $1, with the text $2.
expect_error() {
  local line
  line="$(grep -n "return $1" value2.cc | cut -d: -f1)"
  "$join" unit.cc value1.cc value2.cc main.cc
  if g++ -c unit.cc -o /dev/null 2>errors; then
    echo "$1 was compiled"
    exit 1
  fi
  grep -q "^value2.cc:$line:.*$2" errors ||
    { echo "expected '$2' in value2.cc:$line, got"; cat errors; exit 1; }
}

sed -i 's/return Twice2()/return 2 * kValue/' value2.cc
expect_error '2 \* kValue' 'ambiguous'
sed -i 's/return 2 \* kValue/return Absent()/' value2.cc
expect_error Absent 'not declared'
