#!/usr/bin/env bash
# measure.py counts what a small checkout has.
set -euo pipefail
checkout="$TEST_TMPDIR/checkout"
mkdir -p "$checkout/common/base"
cat >"$checkout/common/base/gate.h" <<'H'
// Decides; has no data_ in its comment.
class Gate final : public Rule {
 public:
  using Clock = int;
  explicit Gate(int start) : start_(start) {}
  enum class Kind { kOne, kTwo };
  int Open(int at);
  void Close() { open_ = 0; }

 private:
  const int start_;
  int open_ GUARDED_BY(mutex_) = 0;
  std::vector<std::string> names_{"a;b"};
};
H
printf 'int Gate::Open(int at) {\n  return at;\n}\n' >"$checkout/common/base/gate.cc"
printf '#include "gate.h"\n' >"$checkout/common/base/gate_test.cc"
printf 'satrap_library(\n    name = "base",\n)\n' >"$checkout/common/base/BUILD"
git -C "$checkout" init -q
git -C "$checkout" add .
expected='lines of the product 17
lines of tests and benchmarks 1
lines of BUILD files 3
targets 1
lines of protos 0
lines of docs 0
largest folder common/base 4
largest file common/base/gate.h 14
longest function common/base/gate.cc:1 2
most members Gate common/base/gate.h 3 members, 3 methods'
got="$(python3 tests/style/measure.py "$checkout")"
if [[ "$got" != "$expected" ]]; then
  printf 'prints\n%s\n' "$got"
  exit 1
fi
