#!/usr/bin/env bash
# A bundle that is unpacked into an empty folder must train a job and run a test without anything
# else: without environment variables, and in a file system that otherwise has only glibc.
set -euo pipefail
programs=(deploy/satrap_cli deploy/coordinator/coordinator data_loader/data_loader
  embedding_worker/embedding_worker embedding_ps/embedding_ps nn_worker/nn_worker
  deploy/satrap_tools nn_worker/nn_worker_host
  nn_worker/device/cuda/cuda_test)
failures=0
fail() { echo "bundle_test: $*"; failures=1; }

# A script can be packed, too; it needs no library.
deploy/bundle/pack.sh "$TEST_TMPDIR/bundle.tar" . . "${programs[@]}" deploy/bundle/pack.sh
mkdir "$TEST_TMPDIR/empty"
tar xf "$TEST_TMPDIR/bundle.tar" -C "$TEST_TMPDIR/empty"
cd "$TEST_TMPDIR/empty/satrap-bundle"

cmp deploy/bundle/pack.sh "$OLDPWD/deploy/bundle/pack.sh" || fail "the script is not in the bundle"

# Every library must come from the bundle or belong to glibc.
for program in "${programs[@]}" lib/*; do
  LD_LIBRARY_PATH="$PWD/lib" ldd "$program" | awk '$2 == "=>" { print $1, $3 }' |
    while read -r name path; do
      [[ "$path" == "$PWD/lib/"* || "$name" =~ ^lib(c|m|mvec|dl|rt|pthread|resolv)\.so ]] ||
        echo "$program takes $name from $path"
    done
done >"$TEST_TMPDIR/strangers"
[[ ! -s "$TEST_TMPDIR/strangers" ]] || fail "$(sort -u "$TEST_TMPDIR/strangers" | head -20)"

env -i ./satrap train demo --set data.synthetic.train_samples=20480 \
  --set data.synthetic.valid_samples=1024 --set data.synthetic.test_samples=1024 \
  --run_dir "$TEST_TMPDIR/run" >"$TEST_TMPDIR/output" 2>&1 ||
  { cat "$TEST_TMPDIR/output"; fail "the bundle does not train"; }
[[ -s "$TEST_TMPDIR/run/report.json" ]] || fail "the training has no report"

[[ "$(env -i ./satrap test)" == "1 passed, 0 failed" ]] || fail "the bundle's test does not pass"
# A test that cannot be started must count as failed.
! env -i ./satrap test nn_worker/no_such_test >"$TEST_TMPDIR/output" 2>&1 ||
  fail "a missing test passed"
[[ "$(tail -n 1 "$TEST_TMPDIR/output")" == "0 passed, 1 failed" ]] || fail "a missing test passed"

# Run the bundle again below another root folder, where nothing else can be found.
bare="$TEST_TMPDIR/bare"
mkdir -p "$bare/bin"
# In Debian chroot is in /usr/sbin, which is not in Bazel's PATH.
chroot="$(PATH="$PATH:/usr/sbin" command -v chroot)"
as_root=()
[[ $EUID -eq 0 ]] || as_root=(unshare -r)
# Clears this test's environment variables, which name files that do not exist there.
enter() { env -i "${as_root[@]}" "$chroot" "$@"; }
# Copies file $1 to the same path below the other root.
bring() { mkdir -p "$bare$(dirname "$1")"; cp -L "$1" "$bare$1"; }
cp -L /bin/dash "$bare/bin/sh"
bring /lib64/ld-linux-x86-64.so.2
for name in libc.so.6 libm.so.6; do bring "/lib/x86_64-linux-gnu/$name"; done
if enter "$bare" /bin/sh -c 'exit 0' 2>/dev/null; then
  mv "$PWD" "$bare/satrap-bundle"
  enter "$bare" /satrap-bundle/satrap exec nn_worker/device/cuda/cuda_test \
    >"$TEST_TMPDIR/output" 2>&1 ||
    { cat "$TEST_TMPDIR/output"; fail "the bundle needs more than glibc"; }
  for program in "${programs[@]:0:8}"; do
    status=0
    enter "$bare" /satrap-bundle/satrap exec "$program" --no_such_flag \
      >"$TEST_TMPDIR/output" 2>&1 || status=$?
    # The dynamic linker would exit with 127.
    [[ $status -eq 1 ]] || { cat "$TEST_TMPDIR/output"; fail "$program exits with $status"; }
  done
else
  echo "bundle_test: another root is not allowed here; skipped that part"
fi
exit "$failures"
