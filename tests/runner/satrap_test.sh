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
