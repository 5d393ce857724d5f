#!/bin/sh
# docs/config.md must be what the generator makes from the comments in the .proto files, and a field
# without a comment must be an error. Arguments: the generator's output, docs/config.md, the
# generator.
if ! diff -u "$2" "$1"; then
  echo "docs/config.md is out of date; run:"
  echo "  bazel build //common/config:config_reference_md && cp bazel-bin/common/config/config.md docs/config.md"
  exit 1
fi

generator="$PWD/$3"
cd "$TEST_TMPDIR" || exit 1
cat >job.proto <<'PROTO'
syntax = "proto2";
package satrap;
message JobConfig {
  // Said.
  optional int32 said = 1;
  optional int32 silent = 2;
}
PROTO
protoc --include_source_info --descriptor_set_out=job.pb job.proto || exit 1
if "$generator" --descriptors job.pb >printed 2>errors; then
  echo "a field without a comment was taken"
  exit 1
fi
expected="satrap.JobConfig.silent has no comment: say in the .proto file what it does"
if [ "$(cat errors)" != "$expected" ]; then
  echo "the error does not name the field without a comment:"
  cat errors
  exit 1
fi
