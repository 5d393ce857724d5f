#!/usr/bin/env bash
# compile_commands.py lists each source of ours once, those of units too, with the options that a clang
# tool understands.
set -euo pipefail
cat >"$TEST_TMPDIR/actions.json" <<'JSON'
{"actions": [
  {"mnemonic": "CppCompile", "arguments": ["/usr/bin/gcc", "-std=c++20", "-iquote", ".",
    "-fno-canonical-system-headers", "-MD", "-MF", "bazel-out/a.d", "-frandom-seed=bazel-out/a.o",
    "-include", "bazel/test_headers.h", "-Winvalid-pch", "-Wno-restrict",
    "-DNAME=\"x y\"", "-c", "common/a.cc", "-o", "bazel-out/a.o"]},
  {"mnemonic": "CppCompile", "arguments": ["/usr/bin/gcc", "-c", "common/a.cc", "-o", "b.o"]},
  {"mnemonic": "CppCompile", "arguments": ["/usr/bin/gcc", "-c", "bazel-out/k8/a.pb.cc"]},
  {"mnemonic": "JoinSources", "arguments": ["bazel/join_sources.sh", "bazel-out/u.cc", "common/b.cc",
    "common/c.cc"]},
  {"mnemonic": "CppCompile", "arguments": ["/usr/bin/gcc", "-O1", "-c", "bazel-out/u.cc"]},
  {"mnemonic": "CppCompile"}
]}
JSON
python3 tests/style/compile_commands.py checkout <"$TEST_TMPDIR/actions.json" |
  tr -d '\n ' >"$TEST_TMPDIR/got"
expected='[{"directory":"checkout","file":"common/a.cc","arguments":["/usr/bin/gcc","-std=c++20",'
expected+='"-iquote",".","-DNAME=\"xy\"","common/a.cc"]},'
for source in common/b.cc common/c.cc; do
  expected+='{"directory":"checkout","file":"'$source'","arguments":["/usr/bin/gcc","-O1","'$source'"]},'
done
expected="${expected%,}]"
if [[ "$(cat "$TEST_TMPDIR/got")" != "$expected" ]]; then
  echo "got      $(cat "$TEST_TMPDIR/got")"
  echo "expected $expected"
  exit 1
fi
