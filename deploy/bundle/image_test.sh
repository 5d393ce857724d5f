#!/usr/bin/env bash
# Runs the tests of image.py.
set -euo pipefail
exec python3 -B deploy/bundle/image_test.py -v
