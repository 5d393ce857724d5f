"""Draws comments, messages and paragraphs of the docs at random, for somebody who has not seen the code
to read. The same seed draws the same pieces of the same checkout.

    draw.py ROOT --seed N [--comments N] [--messages N] [--paragraphs N]
"""

import argparse
import os
import random
import re
import subprocess

LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
FEWEST_WORDS = 5


def files_of(root, *patterns):
    command = ["git", "-C", root, "ls-files", "--", *patterns]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def lines_of(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read().split("\n")


def words(text):
    return len(re.findall(r"[A-Za-z]{2,}", text))


def comments(root):
    """Each run of lines that are comments alone."""
    for name in files_of(root, "*.h", "*.cc", "*.proto"):
        run, start = [], 0
        for number, line in enumerate(lines_of(root, name) + [""], 1):
            if line.lstrip().startswith("//"):
                start = start or number
                run.append(line.strip())
            elif run:
                text = "\n".join(run)
                if words(text) >= FEWEST_WORDS:
                    yield name, start, text
                run, start = [], 0


def messages(root):
    """The literals of each statement of the product that together read as a sentence."""
    for name in files_of(root, "*.cc"):
        if "_test" in name or "/testing/" in name or "benchmark" in name or name.startswith("tests/"):
            continue
        statement, start = [], 0
        for number, line in enumerate(lines_of(root, name), 1):
            if line.lstrip().startswith(("//", "#include")):
                continue
            statement.append(line)
            start = start or number
            if line.rstrip().endswith((";", "{", "}")):
                text = " ... ".join(LITERAL.findall(" ".join(statement)))
                if words(text) >= FEWEST_WORDS:
                    yield name, start, text
                statement, start = [], 0


def paragraphs(root):
    """Prose of the docs: neither headings, tables, lists of commands nor code."""
    for name in files_of(root, "*.md"):
        block, start, is_code = [], 0, False
        for number, line in enumerate(lines_of(root, name) + [""], 1):
            if line.startswith("```"):
                is_code = not is_code
            elif line.strip() and not is_code and not line.startswith(("#", "|", "    ", "![")):
                start = start or number
                block.append(line)
                continue
            if block and words(" ".join(block)) >= FEWEST_WORDS:
                yield name, start, "\n".join(block)
            block, start = [], 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--comments", type=int, default=60)
    parser.add_argument("--messages", type=int, default=30)
    parser.add_argument("--paragraphs", type=int, default=30)
    flags = parser.parse_args()
    number = 0
    for find, count in ((comments, flags.comments), (messages, flags.messages),
                        (paragraphs, flags.paragraphs)):
        found = list(find(flags.root))
        # A generator for each kind: a new comment does not change which messages are drawn.
        drawn = random.Random(f"{flags.seed} {find.__name__}").sample(found, min(count, len(found)))
        print(f"== {find.__name__}: {len(drawn)} of {len(found)}")
        for name, line, text in sorted(drawn):
            number += 1
            print(f"\n{number}. {name}:{line}\n{text}")
        print()


if __name__ == "__main__":
    main()
