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

int Twice() { return 2 * Value(); }

}  // namespace

int ReadValue$number() {
  static_assert(sizeof(int) > 0);
  return only_here::Get();
}
}  // namespace satrap
CC
done
# What stands outside may use the unnamed namespace if no other source has the name.
for number in 1 2; do
  sed -i -e "s/^int Twice/int Twice$number/" -e "s/only_here::Get/Twice$number/" "value$number.cc"
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

sed -i 's/return Twice2/return Absent/' value2.cc
"$join" unit.cc value1.cc value2.cc main.cc
if g++ -c unit.cc -o /dev/null 2>errors; then
  echo "an undeclared name was compiled"
  exit 1
fi
line="$(grep -n Absent value2.cc | cut -d: -f1)"
grep -q "^value2.cc:$line:" errors || { echo "expected an error in value2.cc:$line, got"; cat errors; exit 1; }
