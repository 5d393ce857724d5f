#!/usr/bin/env bash
# Packs programs with the libraries that they need, and with the jobs and models of the checkout, so
# that they run on another x86-64 Linux that has this machine's glibc or a later one.
#
#   pack.sh OUTPUT CHECKOUT PROGRAMS_DIR PROGRAM...
#
# OUTPUT: satrap-bundle/ in an archive, compressed as its name says (.tar.gz, .tar.xz, .tar). PROGRAM: a
# path below PROGRAMS_DIR, which it keeps in the bundle; those that end in _test are run by `./satrap
# test` there. A script, .sh or .py, is a path below CHECKOUT instead. Fails if the archive is larger
# than 35 MB.
set -euo pipefail
output="$1"
checkout="$2"
programs_dir="$3"
shift 3
limit_bytes=35000000

staging="$(mktemp -d)"
trap 'rm -rf "$staging"' EXIT
bundle="$staging/satrap-bundle"
mkdir -p "$bundle/lib"

linked=()
for program in "$@"; do
  mkdir -p "$bundle/$(dirname "$program")"
  if [[ "$program" == *.sh || "$program" == *.py ]]; then
    cp -L "$checkout/$program" "$bundle/$program"
  else
    strip -o "$bundle/$program" "$programs_dir/$program"
    linked+=("$program")
  fi
  chmod 755 "$bundle/$program"
done
printf '%s\n' "$@" | { grep '_test$' || true; } >"$bundle/tests.txt"

# Do not pack glibc's libraries: they must fit the machine's kernel and each other. In ldd's output,
# links look like "libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x...)".
glibc='^(ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl|nss_.*|thread_db|BrokenLocale))\.so'
libraries="$(cd "$bundle" && ldd "${linked[@]}")"
if missing="$(grep 'not found' <<<"$libraries")"; then
  echo "pack.sh: this machine lacks a library:" >&2
  sort -u <<<"$missing" >&2
  exit 1
fi
awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' <<<"$libraries" | sort -u |
  while read -r name path; do
    [[ "$name" =~ $glibc ]] || strip -o "$bundle/lib/$name" "$path"
  done

mkdir -p "$bundle/deploy/jobs" "$bundle/nn_worker/zoo"
cp -L "$checkout"/deploy/jobs/*.textproto "$bundle/deploy/jobs/"
cp -L "$checkout"/nn_worker/zoo/*.textproto "$bundle/nn_worker/zoo/"
cp -L "$checkout/deploy/bundle/satrap.sh" "$bundle/satrap"
cp -L "$checkout/LICENSE" "$bundle/"
chmod 755 "$bundle/satrap"

case "$output" in
  *.tar.gz) compression=(--gzip) ;;
  # Each program for cards holds the same kernels, some ten MB apart. Only with -9 does xz look back
  # so far, which takes 64 MiB of memory to unpack.
  *.tar.xz) compression=(--use-compress-program "xz -9") ;;
  *.tar) compression=() ;;
  *)
    echo "pack.sh: the name of the bundle must end in .tar.gz, .tar.xz or .tar: $output" >&2
    exit 1
    ;;
esac
# Write to another name first, so that the archive is never visible in part.
tar --owner=0 --group=0 "${compression[@]}" -cf "$output.new" -C "$staging" satrap-bundle
bytes="$(stat -c %s "$output.new")"
if [[ ${#compression[@]} -gt 0 && $bytes -gt $limit_bytes ]]; then
  rm "$output.new"
  smaller=""
  [[ "$output" == *.tar.xz ]] || smaller=", or name it .tar.xz, which is smaller"
  echo "pack.sh: the bundle would have $bytes bytes, more than $limit_bytes: leave programs out$smaller" >&2
  exit 1
fi
mv "$output.new" "$output"
