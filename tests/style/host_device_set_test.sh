#!/usr/bin/env bash
# `./satrap test host-device` in a checkout of its own, with a stand-in for bazel: it runs the tests that
# are tagged, with a sanitizer too, and refuses to run none. And the checkout from which this test was
# built, to which the link WORKSPACE leads, has tagged tests of every kind, and the folders from which a
# bundle takes its tests.
set -euo pipefail
# The checkout has neither the broker nor the cluster of the tests.
unset SATRAP_REQUIRE_KAFKA SATRAP_REQUIRE_KUBERNETES
satrap="$(readlink -f satrap)"
root="$(dirname "$(readlink -f WORKSPACE)")"
failures=0

# $1: what is expected; the rest: a condition.
expect() {
  local what="$1"
  shift
  "$@" || { echo "expected: $what; satrap said:"; cat "$TEST_TMPDIR/said"; failures=1; }
}

checkout="$TEST_TMPDIR/checkout"
mkdir -p "$checkout" "$TEST_TMPDIR/bin" "$TEST_TMPDIR/logs"
cp "$satrap" "$checkout/satrap"
mkdir -p "$checkout/tests"
cp -r "$root/tests/runner" "$checkout/tests/"
# Nothing is missing.
printf '#!/bin/bash\n' >"$checkout/setup"
# Answers a query with the labels of $TAGGED, and passes what it is told to test.
cat >"$TEST_TMPDIR/bin/bazel" <<'END'
#!/bin/bash
echo "$*" >>"$CALLS"
case "$1" in
  # None is a whole run.
  query) [[ "$*" == *whole_run* ]] || cat "$TAGGED" ;;
  info) echo "$LOGS" ;;
  test)
    for label in "$@"; do [[ "$label" != //* ]] || echo "$label PASSED in 0.1s"; done
    ;;
esac
END
chmod +x "$checkout/setup" "$TEST_TMPDIR/bin/bazel"
export CALLS="$TEST_TMPDIR/calls" TAGGED="$TEST_TMPDIR/tagged" LOGS="$TEST_TMPDIR/logs"
for test in nn_worker/backend/a_test nn_worker/layer/b_test; do
  mkdir -p "$LOGS/$test"
  echo '<testsuites><testcase name="only" status="run" result="completed"/></testsuites>' \
    >"$LOGS/$test/test.xml"
done

run_satrap() {
  : >"$CALLS"
  PATH="$TEST_TMPDIR/bin:$PATH" "$checkout/satrap" "$@" >"$TEST_TMPDIR/said" 2>&1
}

printf '//nn_worker/backend:a_test\n//nn_worker/layer:b_test\n' >"$TAGGED"
expect "the tagged tests pass" run_satrap test host-device
expect "the query is for the tag" grep -q "^query .*attr(tags, '.bhost_device.b', tests(//\.\.\.))" "$CALLS"
expect "both are tested" \
  grep -q '^test .*-- //nn_worker/backend:a_test //nn_worker/layer:b_test$' "$CALLS"
expect "both are counted" grep -qx '2 passed, 0 failed' "$TEST_TMPDIR/said"
expect "they pass under a sanitizer" run_satrap test asan host-device --test_filter='A*'
expect "the sanitizer's configuration is used" \
  grep -q '^test .*--config=asan .*--test_filter=A\*.* -- //nn_worker/backend:a_test ' "$CALLS"
: >"$TAGGED"
! run_satrap test host-device || { echo "no test is no success"; failures=1; }
expect "it says so" grep -q "^satrap: no test in .* is tagged host_device" "$TEST_TMPDIR/said"
! grep -qE '^(test|build)' "$CALLS" || { echo "tests everything in place of nothing"; failures=1; }

for folder in backend/benchmark backend/device device/host device/kernels graph layer trainer; do
  grep -q '^ *tags = \["host_device"\],\|^ *"host_device",' "$root/nn_worker/$folder/BUILD" ||
    { echo "no test of nn_worker/$folder is tagged host_device"; failures=1; }
done

# A bundle with tests takes them from folders that bundled_tests lists, and must find each.
bundled="$(sed -n '/^bundled_tests()/,/^}/s/^  for folder in \(.*\); do$/\1/p' "$satrap")"
[[ -n "$bundled" ]] || { echo "satrap lists no folders of a bundle's tests"; failures=1; }
for folder in $bundled; do
  [[ -f "$root/nn_worker/$folder/BUILD" ]] ||
    { echo "a bundle takes tests from nn_worker/$folder, which has no BUILD file"; failures=1; }
done
exit "$failures"
