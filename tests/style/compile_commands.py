"""Writes compile_commands.json from Bazel's account of its compilations.

    bazel aquery --output=jsonproto 'mnemonic("CppCompile|JoinSources", //...)' | compile_commands.py ROOT

Reads the actions on stdin and prints one entry for each source of the checkout ROOT, which becomes
the directory of all commands: Bazel's paths are relative to a folder that mirrors the checkout, and
its outputs are reached through the link bazel-out. The sources of a unit (bazel/unit.bzl) have its
options.
"""

import json
import sys

# What only g++ understands, and what names outputs that a tool must not write.
DROPPED = {
    "-fno-canonical-system-headers",
    "-MD",
    "-c",
    "-Winvalid-pch",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
    "-Wno-subobject-linkage",
}
# The header that -include names is precompiled by g++, and each source includes what it uses.
DROPPED_WITH_VALUE = {"-MF", "-o", "-include"}


def sources_of_units(actions):
    """{a unit's file: its sources}. The action's last arguments are the file and the sources."""
    units = {}
    for action in actions:
        if action.get("mnemonic") == "JoinSources":
            arguments = action["arguments"]
            first = max(at for at, each in enumerate(arguments) if each.startswith("bazel-out/"))
            units[arguments[first]] = arguments[first + 1 :]
    return units


def is_ours(source):
    return not source.startswith(("bazel-out/", "external/", "/"))


def compiled(arguments, units):
    """(the file that a command compiles, the sources of ours in it)."""
    if "-c" not in arguments:
        return None, []
    file = arguments[arguments.index("-c") + 1]
    return file, units.get(file, [file] if is_ours(file) else [])


def entry(arguments, file, source, root):
    """The entry of the source, which is `file`, or a part of it."""
    kept = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in DROPPED_WITH_VALUE:
            skip = True
        elif argument == file:
            kept.append(source)
        elif argument not in DROPPED and not argument.startswith("-frandom-seed="):
            kept.append(argument)
    return {"directory": root, "file": source, "arguments": kept}


def main():
    entries = {}
    actions = json.load(sys.stdin).get("actions", [])
    units = sources_of_units(actions)
    for action in actions:
        if action.get("mnemonic") != "CppCompile":
            continue
        arguments = action.get("arguments", [])
        file, sources = compiled(arguments, units)
        for source in sources:
            # A source of several targets is compiled with the same options in each.
            entries.setdefault(source, entry(arguments, file, source, sys.argv[1]))
    json.dump([entries[file] for file in sorted(entries)], sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
