#!/usr/bin/env bash
# ./satrap in a checkout of its own, where the builds and the programs are scripts that tell of their calls:
# when it builds, and when it uses what is built.
set -euo pipefail

fail() {
  echo "FAILED: $1" >&2
  cat out err >&2
  exit 1
}

here="$(mktemp -d "$TEST_TMPDIR/checkout.XXXXXX")"
cp satrap "$here/satrap"
cd "$here"
mkdir -p bin deploy tests bazel-bin/deploy
touch WORKSPACE deploy/a.cc deploy/a_test.cc tests/t.cc bazel-bin/generated.cc
printf '#!/bin/sh\n' >setup
# Builds nothing; $BAZEL_CODE is its exit code. 9 is that of a lock that another command holds.
cat >bin/bazel <<'BAZEL'
#!/bin/sh
echo "bazel $*" >>calls
exit "${BAZEL_CODE:-0}"
BAZEL
for program in satrap_cli satrap_tools; do
  printf '#!/bin/sh\necho "%s $*"\n' "$program" >"bazel-bin/deploy/$program"
done
chmod +x satrap setup bin/bazel bazel-bin/deploy/*
export PATH="$here/bin:$PATH"

# Runs ./satrap with these arguments, into the files out, err and calls.
satrap() {
  : >calls
  ./satrap "$@" >out 2>err || fail "satrap $* exited with $?"
}
# The sources are older than the programs.
age_sources() { touch -d '1 hour ago' WORKSPACE deploy/* tests/* bazel-bin/generated.cc; }

age_sources
for command in validate models model status stop scale checkpoint topics produce retrieve; do
  satrap "$command" x
  [[ ! -s calls ]] || fail "'$command' called Bazel, whose lock may be held for minutes"
  [[ ! -s err ]] || fail "'$command' has nothing to say"
  grep -q "^satrap_cli --install_dir=$here $command x$" out || fail "'$command' was not run"
done

for command in train evaluate predict resume chaos bench; do
  satrap "$command" x
  grep -q 'bazel .*build .*//embedding_ps' calls || fail "'$command' starts roles, which are not built"
done

# Tests and what is generated are no sources of the program.
touch deploy/a_test.cc tests/t.cc bazel-bin/generated.cc
satrap validate x
[[ ! -s err ]] || fail "nothing of the program is newer"

rm -f .cache/*.built
touch -d '1 minute ago' bazel-bin/deploy/*
touch deploy/a.cc
satrap validate x
[[ ! -s calls ]] || fail "a newer source is no reason to build"
[[ "$(wc -l <err)" -eq 1 ]] || fail "one line tells of newer sources"
grep -q 'deploy/a.cc is newer than the program' err || fail "the line names one"

# Bazel does not touch a program that it finds to be as it was, and the build counts all the same.
touch -d '30 seconds ago' deploy/a.cc
satrap train x
satrap validate x
[[ ! -s err ]] || fail "the program was built after the source was changed"
touch -d '10 seconds' deploy/a.cc
satrap validate x
[[ -s err ]] || fail "it was changed again"

# A build that fails is none.
touch -d '30 seconds ago' deploy/a.cc
rm -f .cache/*.built
BAZEL_CODE=1 ./satrap train x >out 2>err && fail "a build that fails is told"
satrap validate x
[[ -s err ]] || fail "nothing was built"

rm bazel-bin/deploy/satrap_cli
: >calls
./satrap status >out 2>err && fail "the build has made no program"
grep -q 'bazel .*build' calls || fail "without a program there is something to build"

# What a check does is in its phases, and what its caller has done before.
# Bazel's folder for tests may lie below a link to the checkout's .git, whose changes are not this checkout's.
export GIT_DIR=/dev/null
mkdir -p tests/runner
echo 'import sys; print("main.py", *sys.argv[3:])' >tests/runner/main.py
satrap check setup=7
grep -qE '^main.py check 0 0 setup=7 setup=[0-9]+ protos=[0-9]+ clang-tidy=[0-9]+ setup=[0-9]+$' out ||
  fail "a step of a check is in no phase"
! ./satrap check kafka >out 2>err || fail "an argument that is no phase was taken"
grep -q "check takes no 'kafka'" err || fail "the message does not name the argument"
printf '#!/bin/sh\n[ "$1" != tidy ]\n' >setup
satrap check
grep -qE '^main.py check 0 0 setup=[0-9]+ setup=[0-9]+$' out || fail "the packages were tried for, which takes time"
printf '#!/bin/sh\n' >setup

# An image is made of the bundle of the programs that pods run, in one line each for packing and making.
mkdir -p deploy/bundle
cat >deploy/bundle/pack.sh <<'PACK'
#!/bin/sh
echo "pack $*" >>calls
touch "$1"
PACK
chmod +x deploy/bundle/pack.sh
cat >deploy/bundle/image.py <<'IMAGE'
import os, sys
assert os.path.exists(sys.argv[2])
print("image", sys.argv[1], *sys.argv[3:], file=open("calls", "a"))
IMAGE
satrap image --output out.tar
grep -q 'toolkit= .*//nn_worker$\|toolkit= .*//nn_worker ' calls || fail "an image without CUDA was not built without"
grep -q 'pack .*/bundle.tar .* deploy/satrap_cli deploy/coordinator/coordinator .* deploy/satrap_pod$' calls ||
  fail "other programs were packed"
! grep -q 'nn_worker_host\|satrap_tools' calls || fail "the image has more than a run needs"
grep -qx 'image out.tar' calls || fail "the image was not made"
satrap image
grep -qx "image $here/.cache/satrap-image.tar" calls || fail "the image has no place"
! ./satrap image --tests >out 2>err || fail "a flag that image does not know was taken"
grep -q "image knows no '--tests'" err || fail "the message does not name the flag"

# With CUDA, its libraries come from where the toolkit has them.
! ./satrap image --cuda >out 2>err || fail "an image with CUDA was made without a toolkit"
grep -q './setup cuda' err || fail "the message does not say what is missing"
mkdir -p .cache/cuda kit/lib nccl/lib nn_worker/device/cuda nn_worker/collective
echo "build --//third_party/cuda:toolkit=$here/kit" >.cache/cuda/bazelrc
echo 'inline constexpr char kCublasLtLibrary[] = "libfirst.so.13";' >nn_worker/device/cuda/cublaslt_plan.h
echo 'inline constexpr char kNcclLibrary[] = "libsecond.so.2";' >nn_worker/collective/nccl_collective.h
touch kit/lib/libfirst.so.13
! ./satrap image --cuda >out 2>err || fail "a library is missing"
grep -q "there is no libsecond.so.2 in $here/kit" err || fail "the message does not name the library"
touch nccl/lib/libsecond.so.2
satrap image --cuda --output=out.tar
grep -q ' nn_worker/nn_worker_cuda deploy/satrap_tools$' calls || fail "the program for cards was not packed"
grep -qx "image out.tar $here/kit/lib/libfirst.so.13 $here/kit/../nccl/lib/libsecond.so.2" calls ||
  fail "other libraries are in the image"
: >nn_worker/collective/nccl_collective.h
! ./satrap image --cuda >out 2>err || fail "no library is named"
grep -q 'nccl_collective.h names its library' err || fail "the message does not name the header"
