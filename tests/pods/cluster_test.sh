#!/usr/bin/env bash
# A cluster works (cluster/check), and leaves nothing on the machine: after `down`, after its owner was
# killed, after Ctrl-C while it starts, and after its first process was killed.
set -Eeuo pipefail
trap 'echo "FAILED in line $LINENO" >&2' ERR
cluster=$PWD/tests/pods/cluster
if [ -z "${SATRAP_REQUIRE_KUBERNETES-}" ]; then
  echo "skipped: SATRAP_REQUIRE_KUBERNETES is not set"
  exit
fi
if [ -z "${SATRAP_KUBERNETES-}" ] || [ "$EUID" != 0 ]; then
  echo "./setup kubernetes was not run, or this is not root" >&2
  exit 1
fi
. "$cluster/settings"
# Short, because sockets lie in it.
state=$(TMPDIR= mktemp -d -t satrap_pods.XXXXXX)
trap '"$cluster/down" "$state"; rm -rf "$state"' EXIT

# All that a cluster changes on a machine.
shown() {
  ip -o link | sed 's/^[0-9]*: //'
  ip -o addr
  nft list tables
  cat /proc/self/mountinfo
  find "${cgroups[@]}" -maxdepth 1 -type d
  for d in $BINDS; do ls -d "$d" 2>/dev/null || true; done
  sysctl -a 2>/dev/null | grep -E '^(vm\.(overcommit_memory|panic_on_oom)|kernel\.(panic|keys)|net\.ipv4\.(ip_forward|conf\.(all|default)\.)|net\.netfilter)' | grep -v 'conntrack_count' || true
  for p in /proc/[0-9]*; do
    tr "\0" " " 2>/dev/null <"$p/cmdline" | grep -F "$state" | grep -vF cluster_test || true
  done
  find "$state" -mindepth 1 -maxdepth 1 ! -name log
}
before=$(shown)
is_as_before() { [ "$before" = "$(shown)" ]; }
# What has been killed is gone a moment later.
expect_nothing_left() {
  await is_as_before || { diff <(echo "$before") <(shown) >&2 || true; echo "left behind after $1" >&2; return 1; }
}
await() { # COMMAND...: half a minute at most
  local end=$((SECONDS + 30))
  until "$@"; do
    [ $SECONDS -lt $end ] || break
    sleep 0.1
  done
  ! "$@" || return 0
  echo "did not happen: $*" >&2
  return 1
}
is_down() { [ ! -e "$state/pid" ]; }

"$cluster/up" "$state" "$SATRAP_KUBERNETES"
echo "== it works, and a second 'up' changes nothing"
first=$(cat "$state/pid")
"$cluster/up" "$state" "$SATRAP_KUBERNETES"
[ "$first" = "$(cat "$state/pid")" ]
"$cluster/check" "$state"
echo "== another one at the same time is refused"
! "$cluster/up" "$state/other" "$SATRAP_KUBERNETES" 2>"$state/log/other" || exit 1
grep -q 'another cluster of tests runs on this machine' "$state/log/other"
rm -r "$state/other"
"$cluster/down" "$state"
expect_nothing_left down
"$cluster/down" "$state"

echo "== its owner is killed"
sleep 1000 &
owner=$!
"$cluster/up" "$state" "$SATRAP_KUBERNETES" "$owner"
kill -KILL "$owner"
await is_down
expect_nothing_left "the owner's end"

echo "== Ctrl-C while it starts"
# A shell without a terminal starts what runs in the background with SIGINT ignored.
python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$cluster/up" "$state" "$SATRAP_KUBERNETES" &
starting=$!
await test -s "$state/pid"
kill -INT "$starting"
! wait "$starting" || exit 1
expect_nothing_left Ctrl-C

echo "== its first process is killed; the next 'up' begins anew"
"$cluster/up" "$state" "$SATRAP_KUBERNETES"
kill -KILL "$(cat "$state/pid")"
"$cluster/up" "$state" "$SATRAP_KUBERNETES"
"$cluster/down" "$state"
expect_nothing_left "a killed cluster"
echo passed
