#!/usr/bin/env bash
# Runs the tests of a Python file. $1: its path.
set -euo pipefail
exec python3 -B "$1" -v
