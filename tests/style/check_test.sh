#!/usr/bin/env bash
# Each rule of check.sh finds a planted violation, and finds nothing in a clean checkout.
set -euo pipefail
check="$(readlink -f tests/style/check.sh)"
format="$(readlink -f .clang-format)"
failures=0

# Makes a checkout with one clean header, in which each case then plants its violation.
new_checkout() {
  rm -rf "$TEST_TMPDIR/checkout"
  mkdir -p "$TEST_TMPDIR/checkout"/{common/role,deploy/launcher,embedding_ps,proto,tests} \
    "$TEST_TMPDIR/checkout"/nn_worker/{backend/testing,device,rank}
  cd "$TEST_TMPDIR/checkout"
  cp "$format" .clang-format
  cat >common/a.h <<'EOF'
// A clean header.

#ifndef SATRAP_COMMON_A_H_
#define SATRAP_COMMON_A_H_

#include <string>

namespace satrap {
int Count(const std::string& of_what);
}  // namespace satrap

#endif  // SATRAP_COMMON_A_H_
EOF
  echo 'satrap_library(name = "common", sources = ["a"])' >common/BUILD
}

# $1: rule; $2: file to plant, whose text comes on stdin; $3: part of the expected message.
expect_found() {
  new_checkout
  "$check" "$1" . >/dev/null || { echo "$1: found something in a clean checkout"; failures=1; }
  cat >"$2"
  local said
  if said="$("$check" "$1" .)"; then
    echo "$1: did not find the violation planted in $2"
    failures=1
  elif [[ "$said" != *"$2"*"$3"* ]]; then
    echo "$1: expected a message about $2 with '$3', got: $said"
    failures=1
  fi
  # An exception suppresses it, and is itself a violation once nothing needs it.
  echo "$1 $2 for the test" >allowed.txt
  "$check" "$1" . allowed.txt >/dev/null || { echo "$1: ignored its exception"; failures=1; }
  rm "$2"
  ! "$check" "$1" . allowed.txt >/dev/null || { echo "$1: kept a stale exception"; failures=1; }
}

expect_found format common/b.cc 'not formatted' <<<'int  a ;'
expect_found layers common/b.cc 'may not include' <<<'#include "embedding_ps/table.h"'
expect_found layers nn_worker/b.cc 'may not include' <<<'#include "embedding_ps/table.h"'
expect_found layers embedding_ps/b.cc 'may not include' <<<'#include "deploy/cli.h"'
expect_found layers embedding_ps/b.cc 'service and client' <<<'#include "proto/hot.grpc.pb.h"'
expect_found layers nn_worker/device/b.cc 'higher folder' <<<'#include "nn_worker/backend/c.h"'
expect_found layers nn_worker/backend/testing/b.h 'higher folder' <<<'#include "nn_worker/graph/c.h"'
expect_found layers nn_worker/rank/b.cc 'may include grpc' <<<'#include "grpcpp/channel.h"'
expect_found layers nn_worker/rank/b.cc 'may include gloo' <<<'#include <gloo/context.h>'
expect_found targets common/b.cc 'no list' <<<'int a;'
expect_found targets common/a_test.cc 'no list of a test' <<<'int a;'
expect_found layers nn_worker/b.cc 'CUDA' <<<'#include <cuda_runtime.h>'
expect_found layers nn_worker/b.h 'CUDA' <<<'#include <nccl.h>'
expect_found layers nn_worker/b.cc 'backends in host memory' \
  <<<'#include "nn_worker/backend/cpu/host_tensor.h"'
expect_found tags nn_worker/BUILD 'needs the tag host_device' <<'EOF'
satrap_test(
    name = "b_test",
    deps = ["//nn_worker/device/host:host_device"],
)
EOF
expect_found layers proto/BUILD 'private' \
  <<<'package(default_visibility = ["//visibility:public"])'
expect_found conditionals common/b.cc 'conditional' <<<'#ifdef SATRAP_FAST'
while read -r statement; do
  expect_found endings deploy/launcher/b.cc 'text for people' <<<"$statement"
done <<'EOF'
if (absl::StrContains(status.message(), "is damaged")) Stop();
const bool saved = !stopped.ok() || absl::StrContains(stopped->ending().text(), kNothing);
if (absl::StartsWith(reason, name + ":")) return process;
if (entry.generation().cause() == kCauseScale) continue;
if (kCauseScale == entry.cause()) continue;
if (cause != kCauseStart) return true;
return absl::StrContains(LastErrorOf(process.log_path), words);
const size_t at = status.message().find(phrase);
if (absl::StartsWith(line, kGenerationLine)) break;
EOF
expect_found endings common/role/b.cc 'text for people' < <(
  echo 'const bool again ='
  echo '    absl::StrContains(answer.status().message(),'
  echo '                      kOfAnotherRun);'
)
new_checkout
echo '#include "common/a.h"' >common/b_test.cc
[[ "$("$check" support .)" == 'common/a.h: only tests include it'* ]] || { echo 'support: found no test support'; failures=1; }
echo '#include "common/a.h"' >common/a.cc
! "$check" support . >/dev/null || { echo 'support: took a source for a user of its own header'; failures=1; }
echo 'support common/a.h for the test' >allowed.txt
"$check" support . allowed.txt >/dev/null || { echo 'support: ignored its exception'; failures=1; }
echo '#include "common/a.h"' >common/role/b.cc
"$check" support . >/dev/null || { echo 'support: took what a product uses for test support'; failures=1; }
! "$check" support . allowed.txt >/dev/null || { echo 'support: kept a stale exception'; failures=1; }
expect_found fields proto/job.proto 'no code reads' <<<'  optional int32 never_read = 1;'
expect_found headers common/b.h 'no guard' <<<'// A contract.'
expect_found headers common/b.h 'begins with' <<<'#ifndef SATRAP_COMMON_B_H_'
new_checkout
touch common/role/file{1..41}.h
[[ "$("$check" rooms .)" == 'common/role: 41 files, more than 40' ]] || { echo 'rooms: found no full folder'; failures=1; }
echo 'rooms common/role for the test' >allowed.txt
"$check" rooms . allowed.txt >/dev/null || { echo 'rooms: ignored its exception'; failures=1; }
rm common/role/file41.h
! "$check" rooms . allowed.txt >/dev/null || { echo 'rooms: kept a stale exception'; failures=1; }
"$check" rooms . >/dev/null || { echo 'rooms: found something in a folder of 40 files'; failures=1; }
expect_found sizes common/b.h 'more than 150' < <(printf '\n%.0s' {1..151})
expect_found sizes common/b.cc 'more than 500' < <(printf '\n%.0s' {1..501})
expect_found sizes common/b.cc 'a function' < <(
  echo 'void Long() {'
  printf '  Step();\n%.0s' {1..71}
  echo '}'
)
expect_found sizes common/b.cc ':3: a function' < <(
  echo 'void Declared('
  echo '    int x);'
  echo 'void Long('
  echo '    int x) {'
  printf '  Step();\n%.0s' {1..71}
  echo '}'
)
new_checkout
{
  echo 'constexpr int kTable[] = {'
  printf '    1,\n%.0s' {1..80}
  echo '};'
  echo 'constexpr char kText[] = R"pb('
  printf '  a: 1\n%.0s' {1..80}
  echo ')pb";'
  echo 'void Short() {'
  printf '  Step();\n%.0s' {1..69}
  echo '}'
} >common/b.cc
"$check" sizes . >/dev/null || { echo 'sizes: took a table or a text for a function'; failures=1; }
expect_found sizes common/b.h 'more than 150' < <(
  echo '// A contract.'
  printf '\n%.0s' {1..151}
)
expect_found widths common/b.cc 'more than 100 columns' < <(printf '  // %099d\n' 0)
expect_found widths proto/b.proto 'more than 100 columns' < <(printf '  // %099d\n' 0)
expect_found widths proto/b.proto 'more than 100 columns' < <(printf '  NONE = 0;  // %099d\n' 0)
expect_found words common/b.cc 'unfinished' <<<"// TO""DO: the rest"
expect_found words common/b.cc 'one machine' <<<'const char* kFile = "/ho''me/me/data";'
expect_found words common/b.cc 'on the net' <<<'// From https:''//example.org/page.'
expect_found words common/b.cc 'environment' <<<'const char* value = std::getenv("X");'
expect_found words common/b.h 'says nothing' <<<'class TableManager {};'
expect_found words common/row_utils.cc 'says nothing' <<<'int a;'

exit "$failures"
