#!/bin/sh
# docs/config.md must be what the comments of the .proto files make of it.
if ! diff -u "$2" "$1"; then
  echo "docs/config.md is out of date; run:"
  echo "  bazel build //common/config:config_reference_md && cp bazel-bin/common/config/config.md docs/config.md"
  exit 1
fi
