"""Prints how large the project is: lines by kind, targets, and the largest folder, file, function and
classes. What is tested and what is bounded is in check.sh; this only measures.

    measure.py ROOT      ROOT is a checkout, of any commit
"""

import collections
import os
import re
import subprocess
import sys

# Files that only tests and benchmarks use. The first words are those of older commits.
TEST = re.compile(
    r"_test\.(cc|h)$|^tests/|/testing/|fake_|_testing\.|_fixture\.|_test_fixture|conformance|benchmark"
)
NO_DATA = ("using ", "friend ", "typedef ", "static_assert")
TYPE = re.compile(r"\b(class|struct|enum|union)\b")


def files_of(root):
    names = subprocess.run(["git", "-C", root, "ls-files"], capture_output=True, text=True, check=True)
    return names.stdout.split("\n")[:-1]


def read(root, name):
    with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
        return file.read()


def functions_of(text):
    """(lines, first line) of each function that begins in the first column."""
    start = opened = 0
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"[A-Za-z].*[({,]$", line) and not re.match(r"(namespace|extern)[ {]", line):
            if not TYPE.match(line):
                start, opened = number, 0
        if start and line.endswith("{"):
            opened = 1
        if start and not opened and line.endswith(";"):
            start = 0
        if line.startswith("}") and start:
            yield number - start, start
            start = 0


def members_of(body):
    """(data members, methods) of the text of a class, from after its brace."""
    data = methods = 0
    depth, statement, position = 1, "", 0
    while position < len(body) and depth > 0:
        char = body[position]
        if char == "{":
            if depth == 1 and "(" in statement and not TYPE.search(statement):
                methods += 1
                statement = "#"  # its body ends the statement
            elif depth == 1 and not TYPE.search(statement):
                data += 1
                statement = "#="
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 1 and statement == "#":
                statement = ""
        elif depth == 1 and char == ";":
            text = statement.strip()
            if text and not text.startswith("#") and not text.startswith(NO_DATA):
                is_data = re.search(r"_\s*(=.*)?$|GUARDED_BY", text) or "std::function<" in text
                if "(" in text and not is_data:
                    methods += 1
                elif not TYPE.match(text):
                    data += 1
            statement = ""
        elif depth == 1 and char == ":" and statement.strip() in ("public", "private", "protected"):
            statement = ""
        elif depth == 1:
            statement += char
        position += 1
    return data, methods


def classes_of(text):
    """(name, data members, methods) of each class."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', text)
    for match in re.finditer(r"(?<!enum )\b(?:class|struct)\s+([\w:]+)(?:\s+final)?(?:\s*:[^{;]*)?\s*\{", text):
        yield (match[1], *members_of(text[match.end() :]))


def main(root):
    names = files_of(root)
    sources = [name for name in names if name.endswith((".h", ".cc"))]
    texts = {name: read(root, name) for name in sources}
    lines = {name: text.count("\n") for name, text in texts.items()}
    build = [read(root, name) for name in names if os.path.basename(name) == "BUILD"]

    def of_kind(suffix):
        return sum(read(root, name).count("\n") for name in names if name.endswith(suffix))

    print("lines of the product", sum(lines[name] for name in sources if not TEST.search(name)))
    print("lines of tests and benchmarks", sum(lines[name] for name in sources if TEST.search(name)))
    print("lines of BUILD files", sum(text.count("\n") for text in build))
    print("targets", sum(len(re.findall(r"^ *name = ", text, re.M)) for text in build))
    print("lines of protos", of_kind(".proto"))
    print("lines of docs", of_kind(".md"))
    folders = collections.Counter(os.path.dirname(name) for name in names)
    print("largest folder", *folders.most_common(1)[0])
    longest = max(lines, key=lines.get)
    print("largest file", longest, lines[longest])
    functions = [(size, name, at) for name in sources for size, at in functions_of(texts[name])]
    size, name, at = max(functions)
    print("longest function", f"{name}:{at}", size)
    product = [name for name in sources if not TEST.search(name)]
    classes = [(name, *found) for name in product for found in classes_of(texts[name])]
    for name, found, data, methods in sorted(classes, key=lambda each: -each[2])[:3]:
        print("most members", found, name, f"{data} members, {methods} methods")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else ".")
