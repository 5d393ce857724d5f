#include "deploy/submit/kubectl/testing/fake_kubectl.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"

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

void Write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  CHECK(file.good()) << path;
}

void WriteProgram(const std::string& path, const std::string& script) {
  Write(path, script);
  fs::permissions(path, fs::perms::owner_all);
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

void FakeKubectlTest::SetUp() {
  dir_ = ::testing::TempDir() + "fake_kubectl.XXXXXX";
  ASSERT_NE(mkdtemp(dir_.data()), nullptr);
  for (const char* name : {"/calls", "/inputs", "/rules"}) fs::create_directory(dir_ + name);
  WriteProgram(program(), kScript);
}

void FakeKubectlTest::TearDown() { fs::remove_all(dir_); }

void FakeKubectlTest::On(const std::string& pattern, const Answer& answer) {
  const std::string rule = absl::StrFormat("%s/rules/%04d", dir_, rules_++);
  fs::create_directory(rule);
  Write(rule + "/pattern", pattern);
  Write(rule + "/out", answer.out);
  Write(rule + "/err", answer.err);
  Write(rule + "/code", absl::StrCat(answer.code));
  if (answer.once) Write(rule + "/once", "");
}

void FakeKubectlTest::AnswerOthersBy(const std::string& script) {
  WriteProgram(dir_ + "/cluster", script);
}

std::vector<std::string> FakeKubectlTest::Calls() const {
  std::vector<std::string> calls;
  for (int i = 0;; ++i) {
    const std::string path = absl::StrFormat("%s/calls/%04d", dir_, i);
    if (!fs::exists(path)) return calls;
    calls.push_back(Read(path));
  }
}

std::string FakeKubectlTest::Input(size_t call) const {
  return Read(absl::StrFormat("%s/inputs/%04d", dir_, call));
}

}  // namespace satrap
