#!/usr/bin/env python3
"""How long a random sample of the checkout's compilations takes as the build runs them: sources of a
folder together (bazel/unit.bzl) with precompiled headers (bazel/cc.bzl); and, for comparison, each
source by itself, with and without the precompiled header. Outputs go to /dev/null.

    bazel build //... && python3 tests/benchmark/compile_times.py [COMPILATIONS] [SEED]

Prints one JSON line: by kind, the numbers of compilations and of sources in the sample and the
core-seconds of each way; and the number of compilations and of sources in the whole build.
"""

import json
import os
import random
import resource
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "style"))
import compile_commands  # noqa: E402

# Commands run here, not in Bazel's execution root, which has only the folders that the last command needed.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def compilations():
    """[(command line, its sources)] of Bazel's C++ compilations of ours for //..."""
    query = 'mnemonic("CppCompile|JoinSources", deps(//...))'
    done = subprocess.run(
        ["bazel", "aquery", "--noshow_progress", "--output=jsonproto", query],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    actions = json.loads(done.stdout)["actions"]
    units = compile_commands.sources_of_units(actions)
    found = []
    for action in actions:
        arguments = action.get("arguments", [])
        # A compilation for the build's own tools has no precompiled header, and neither have kernels.
        if action["mnemonic"] == "CppCompile" and "-include" in arguments:
            _, sources = compile_commands.compiled(arguments, units)
            if sources:
                found.append((arguments, sources))
    return found


def of_source(arguments, source):
    """The command that compiles one source of a unit by itself."""
    command = list(arguments)
    command[command.index("-c") + 1] = source
    return command


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
    ways = ("together", "alone", "alone_without_header")
    result = {
        kind: {"compilations": 0, "sources": 0, **dict.fromkeys(ways, 0.0)} for kind in ("product", "test")
    }
    for arguments, sources in sample:
        of_kind = result["test" if sources[0].endswith("_test.cc") else "product"]
        of_kind["compilations"] += 1
        of_kind["sources"] += len(sources)
        of_kind["together"] += core_seconds(arguments)
        for source in sources:
            alone = of_source(arguments, source)
            of_kind["alone"] += core_seconds(alone)
            of_kind["alone_without_header"] += core_seconds(without_header(alone))
    for of_kind in result.values():
        of_kind.update({way: round(of_kind[way], 1) for way in ways})
    sources = sum(len(each) for _, each in found)
    print(json.dumps({"compilations": len(found), "sources": sources, "core_seconds": result}))


if __name__ == "__main__":
    main()
