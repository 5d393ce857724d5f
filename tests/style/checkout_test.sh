#!/usr/bin/env bash
# Checks one rule on the checkout that this test was built from, which the WORKSPACE file leads to.
set -euo pipefail
root="$(dirname "$(readlink -f WORKSPACE)")"
exec "$root/tests/style/check.sh" "$1" "$root" "$root/tests/style/allowed.txt"
