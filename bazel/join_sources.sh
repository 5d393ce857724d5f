#!/usr/bin/env bash
# Writes sources one after another into a file that is compiled in their place (unit.bzl).
#
#     join_sources.sh OUT SOURCE...
#
# Several sources may have the same name in their unnamed namespaces. So the unnamed namespace of each
# source lies in a namespace of its own, and what the source defines outside of it sees it by a
# using-directive. Both stand in the line where the unnamed namespace begins or ends, and #line names the
# source, so that g++ names the right line of the right file.
set -euo pipefail
out="$1"
shift
for source in "$@"; do
  name="only_in_$(printf %s "${source%.cc}" | tr -c 'a-zA-Z0-9' _)"
  printf '#line 1 "%s"\n' "$source"
  sed -e "s|^namespace {\$|namespace $name { namespace {|" \
    -e "s|^}  // namespace\$|} } using namespace $name;|" "$source"
done >"$out"
