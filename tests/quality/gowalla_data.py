#!/usr/bin/env python3
"""Prepares Gowalla (train.txt.gz: `user item item ...` a line) for deploy/jobs/gowalla_*.textproto.

    gowalla_data.py DIR OUT [SEED]     reads DIR/train.txt.gz, writes to the folder OUT

A seeded tenth of each user's items is held out, at least one of users with five items or more.

  train.tsv      user, item, label 1, history: up to 30 of the user's other items, drawn by the seed
  users.tsv      the same of each user, with up to 200 items of his training as history and any item
  items.tsv      the same of each item of training, with any user
  held_out.tsv   user, item
"""

import gzip
import os
import random
import sys

MOST_HISTORY = 30
MOST_HISTORY_OF_USERS = 200


def hold_out(items, rng):
    """(training, held out): a tenth is held out, in the order of a shuffle."""
    shuffled = items[:]
    rng.shuffle(shuffled)
    count = (len(items) + 5) // 10 if len(items) >= 2 else 0
    if len(items) >= 5:
        count = max(count, 1)
    return shuffled[count:], shuffled[:count]


def line(user, item, history):
    return f"{user}\t{item}\t1\t{'|'.join(history)}\n"


def prepare(lines, out, seed):
    rng = random.Random(seed)
    users = []
    for text in lines:
        fields = text.split()
        if len(fields) > 1:
            users.append((fields[0],) + hold_out(fields[1:], rng))
    names = ("train.tsv", "users.tsv", "items.tsv", "held_out.tsv")
    files = {name: open(os.path.join(out, name), "w", encoding="utf-8") for name in names}
    records = []
    seen = {}
    for user, training, held_out in users:
        for at, item in enumerate(training):
            others = training[:at] + training[at + 1 :]
            if others:
                history = rng.sample(others, min(len(others), MOST_HISTORY))
                records.append(line(user, item, history))
            seen.setdefault(item, user)
        if training:
            history = rng.sample(training, min(len(training), MOST_HISTORY_OF_USERS))
            files["users.tsv"].write(line(user, training[0], history))
        for item in held_out:
            files["held_out.tsv"].write(f"{user}\t{item}\n")
    rng.shuffle(records)
    files["train.tsv"].writelines(records)
    for item, user in seen.items():
        files["items.tsv"].write(line(user, item, [item]))
    for file in files.values():
        file.close()


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    os.makedirs(sys.argv[2], exist_ok=True)
    with gzip.open(os.path.join(sys.argv[1], "train.txt.gz"), "rt", encoding="utf-8") as lines:
        prepare(lines, sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 1)


if __name__ == "__main__":
    main()
