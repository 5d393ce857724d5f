#!/usr/bin/env bash
# Checks one rule on the checkout that this test was built from. Bazel's copy of the WORKSPACE file is
# a link into it.
set -euo pipefail
root="$(dirname "$(readlink -f WORKSPACE)")"
exec "$root/tests/style/check.sh" "$1" "$root" "$root/tests/style/allowed.txt"
