#!/usr/bin/env bash
# Checks one rule on the checkout from which this test was built; the link WORKSPACE leads to it.
set -euo pipefail
root="$(dirname "$(readlink -f WORKSPACE)")"
exec "$root/tests/style/check.sh" "$1" "$root" "$root/tests/style/allowed.txt"
