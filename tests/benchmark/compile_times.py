#!/usr/bin/env python3
"""How long a random sample of the checkout's sources takes to compile, with the precompiled headers
(bazel/cc.bzl) and without. Each source is compiled both ways, one after the other; outputs go to
/dev/null.

    bazel build //... && python3 tests/benchmark/compile_times.py [SOURCES] [SEED]

Prints one JSON line: the number of sources, the core-seconds of each way by kind, and the number of
compilations in the whole build.
"""

import json
import os
import random
import resource
import subprocess
import sys

# Commands run here, not in Bazel's execution root, which has only the folders that the last command needed.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def compilations():
    """The command lines of Bazel's C++ compilations for //..., as lists of arguments."""
    query = 'mnemonic("CppCompile", deps(//...))'
    done = subprocess.run(
        ["bazel", "aquery", "--noshow_progress", "--output=jsonproto", query],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    # A compilation for the build's own tools has another configuration, and is no source of ours.
    actions = json.loads(done.stdout)["actions"]
    return [action["arguments"] for action in actions if source_of(action["arguments"])]


def source_of(arguments):
    """The source of ours that a command compiles, or "" for generated ones and others."""
    source = arguments[arguments.index("-c") + 1] if "-c" in arguments else ""
    here = source.endswith(".cc") and not source.startswith(("bazel-out/", "external/"))
    return source if here and "-include" in arguments else ""


def without_header(arguments):
    """The command without its precompiled header."""
    at = arguments.index("-include")
    return [each for each in arguments[:at] + arguments[at + 2 :] if each != "-Winvalid-pch"]


def core_seconds(arguments):
    """The processor time of a compilation, whose output is thrown away."""
    command = list(arguments)
    command[command.index("-o") + 1] = "/dev/null"
    if "-MF" in command:
        command[command.index("-MF") + 1] = "/dev/null"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # The overflow warnings that a precompiled header makes false are errors without it.
    subprocess.run([*command, "-Wno-error"], cwd=ROOT, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    found = compilations()
    sample = random.Random(seed).sample(found, min(size, len(found)))
    seconds = {kind: {"sources": 0, "with": 0.0, "without": 0.0} for kind in ("product", "test")}
    for arguments in sample:
        kind = "test" if source_of(arguments).endswith("_test.cc") else "product"
        seconds[kind]["sources"] += 1
        seconds[kind]["with"] += core_seconds(arguments)
        seconds[kind]["without"] += core_seconds(without_header(arguments))
    for each in seconds.values():
        each["with"] = round(each["with"], 1)
        each["without"] = round(each["without"], 1)
    print(json.dumps({"compilations": len(found), "core_seconds": seconds}))


if __name__ == "__main__":
    main()
