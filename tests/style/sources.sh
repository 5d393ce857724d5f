#!/usr/bin/env bash
# Lists the files of the checkout $1 that match the given patterns, one path per line, sorted.
# Leaves out files that git ignores; if git is not there, build outputs and runs.
set -euo pipefail
cd "$1"
shift
{ git ls-files --cached --others --exclude-standard -- "$@" 2>/dev/null ||
  find . \( -path './bazel-*' -o -path ./.cache -o -path ./runs -o -path ./.git \) -prune -o \
    -type f -printf '%P\n' |
  while IFS= read -r path; do
    for pattern in "$@"; do
      # As in git, a pattern without a folder matches in every folder.
      # shellcheck disable=SC2053
      if [[ "$path" == $pattern || "${path##*/}" == $pattern ]]; then echo "$path"; break; fi
    done
  done; } | sort -u | while IFS= read -r path; do
  [[ ! -f "$path" ]] || echo "$path"
done
