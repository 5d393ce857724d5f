#include "deploy/submit/kubectl/testing/fake_kubectl.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = R"sh(#!/bin/bash
dir="$(dirname "$0")"
call="${*//$'\n'/ }"
number="$(printf %04d "$(ls "$dir/calls" | wc -l)")"
for arg; do [[ "$arg" != --filename=- ]] || cat >"$dir/inputs/$number"; done
printf %s "$call" >"$dir/calls/$number"
for rule in "$dir"/rules/*; do
  [[ "$call" == $(<"$rule/pattern") ]] || continue
  code="$(<"$rule/code")"
  cat "$rule/out"
  cat "$rule/err" >&2
  [[ ! -e "$rule/once" ]] || rm -r "$rule"
  exit "$code"
done
[[ ! -x "$dir/cluster" ]] || exec "$dir/cluster" "$dir/inputs/$number" "$@"
echo "no answer for: $call" >&2
exit 64
)sh";

// A program in `dir` with that name.
void WriteProgram(const TempDir& dir, const std::string& name, const std::string& script) {
  fs::permissions(dir.Write(name, script), fs::perms::owner_all);
}

}  // namespace

void FakeKubectlTest::SetUp() {
  for (const char* name : {"calls", "inputs", "rules"}) fs::create_directory(temp_.At(name));
  WriteProgram(temp_, "kubectl", kScript);
}

void FakeKubectlTest::On(const std::string& pattern, const Answer& answer) {
  const std::string rule = absl::StrFormat("rules/%04d", rules_++);
  fs::create_directory(temp_.At(rule));
  temp_.Write(rule + "/pattern", pattern);
  temp_.Write(rule + "/out", answer.out);
  temp_.Write(rule + "/err", answer.err);
  temp_.Write(rule + "/code", absl::StrCat(answer.code));
  if (answer.once) temp_.Write(rule + "/once", "");
}

void FakeKubectlTest::AnswerOthersBy(const std::string& script) {
  WriteProgram(temp_, "cluster", script);
}

std::vector<std::string> FakeKubectlTest::Calls() const {
  std::vector<std::string> calls;
  for (int i = 0;; ++i) {
    const std::string path = temp_.At(absl::StrFormat("calls/%04d", i));
    if (!fs::exists(path)) return calls;
    calls.push_back(TempDir::Read(path));
  }
}

std::string FakeKubectlTest::Input(size_t call) const {
  return TempDir::Read(temp_.At(absl::StrFormat("inputs/%04d", call)));
}

}  // namespace satrap
