"""Writes compile_commands.json from Bazel's account of its compilations.

    bazel aquery --output=jsonproto 'mnemonic("CppCompile", //...)' | compile_commands.py ROOT

Reads the actions on stdin and prints one entry for each source of the checkout ROOT, which becomes
the directory of all commands: Bazel's paths are relative to a folder that mirrors the checkout, and
its outputs are reached through the link bazel-out.
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
}
# The header that -include names is precompiled by g++, and each source includes what it uses.
DROPPED_WITH_VALUE = {"-MF", "-o", "-include"}


def entry(arguments, root):
    """The entry of one compilation, or None if it compiles no source of ours."""
    source = arguments[arguments.index("-c") + 1] if "-c" in arguments else None
    if source is None or source.startswith(("bazel-out/", "external/", "/")):
        return None
    kept = []
    skip = False
    for argument in arguments:
        if skip:
            skip = False
        elif argument in DROPPED_WITH_VALUE:
            skip = True
        elif argument not in DROPPED and not argument.startswith("-frandom-seed="):
            kept.append(argument)
    return {"directory": root, "file": source, "arguments": kept}


def main():
    entries = {}
    for action in json.load(sys.stdin).get("actions", []):
        made = entry(action.get("arguments", []), sys.argv[1])
        # A source of several targets is compiled with the same options in each.
        if made is not None:
            entries.setdefault(made["file"], made)
    json.dump([entries[file] for file in sorted(entries)], sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
