#!/usr/bin/env bash
# Writes the data of deploy/jobs/pooled.textproto: train.csv, valid.csv and test.csv, the same bytes
# everywhere.
#
#   tests/quality/pooled_data.sh DIR
set -euo pipefail
[[ $# -eq 1 ]] || { sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 1; }
mkdir -p "$1"

# write FILE ROWS SEED. A record: label, number, user, tags with weights, history, genres, weight. Any
# list may be empty, and an id may occur twice in one.
write() {
  perl -e '
    my ($rows, $state) = @ARGV;
    # Park and Miller: the products are exact in doubles.
    sub below { $state = $state * 48271 % 2147483647; return $state % $_[0] }
    sub list { my ($most, $item) = @_; return join "|", map { $item->() } 1 .. below($most + 1) }
    for (1 .. $rows) {
      my $user = below(2000);
      my $number = below(10000) / 10000;
      my $genre = below(40);
      my $tags = list(4, sub { sprintf "%d:%.3f", below(300), below(1000) / 1000 });
      my $history = list(7, sub { below(1500) });
      my $genres = list(3, sub { ($genre + below(3)) % 40 });
      my $score = ($user % 7) + ($genres eq "" ? 0 : $genre % 5) + 4 * $number + below(6);
      printf "%d,%.4f,%d,%s,%s,%s,%d\n", $score > 9 ? 1 : 0, $number, $user, $tags, $history,
          $genres, below(10) == 0 ? 2 : 1;
    }' "$2" "$3" >"$1"
}

write "$1/train.csv" 60000 1
write "$1/valid.csv" 3000 2
write "$1/test.csv" 3000 3
