"""clang-tidy over sources, and whether each compiles by its own includes.

    tidy.py ROOT CACHE COUNTS [--alone] FILE...

Sources of a folder are read together, because most of the time goes into the headers they share: a
unit is their text, one after another, since clang's analyzer does not look into what is included.
Where that does not compile (two sources have a constant of the same name), each is read by itself.

Together, and with a precompiled header, a source could do without an #include that it needs, and g++
keeps some warnings to itself (bazel/cc.bzl). So each is also compiled by itself, by g++ with its full
optimisation and without output. --alone does only that.

Prints findings and "tidy: N files, N with findings", and writes "PASSED FAILED" to the file COUNTS.
"""

import collections
import concurrent.futures
import os
import re
import subprocess
import sys

MOST_IN_UNIT = 8
# Thread-safety analysis is clang's; and g++'s omp.h gives an attribute arguments that clang does not know.
CLANG_FLAGS = ["-Wthread-safety", "-Wthread-safety-beta", "-D__malloc__(...)="]
_FINDING = re.compile(r"^(\S+?):\d+:\d+: (?:warning|error): .*\[([\w.,-]+)\]$")


def units_of(files, most=MOST_IN_UNIT):
    """Lists of at most `most` files, each of one folder, and tests apart."""
    groups = collections.defaultdict(list)
    for file in files:
        groups[os.path.dirname(file), file.endswith("_test.cc")].append(file)
    return [
        group[start : start + most]
        for _, group in sorted(groups.items())
        for start in range(0, len(group), most)
    ]


class Tidy:
    def __init__(self, root, cache, flags):
        self.root = root
        self.folder = os.path.join(cache, "tidy")
        self.flags = flags
        os.makedirs(self.folder, exist_ok=True)

    def _run(self, command):
        return subprocess.run(
            command,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )

    def _write(self, unit):
        """The file with the text of the unit's sources, and [(its line before a source's first, source)]."""
        name = os.path.join(self.folder, re.sub(r"\W", "_", unit[0]) + ".cc")
        starts, lines = [], 0
        with open(name, "w", encoding="utf-8") as file:
            for path in unit:
                with open(os.path.join(self.root, path), encoding="utf-8") as text:
                    source = text.read()
                starts.append((lines, path))
                file.write(source + "\n")
                lines += source.count("\n") + 1
        return name, starts

    def _as_in_sources(self, said, name, starts):
        """What clang-tidy said of a unit's file, with the places of its sources. It ignores #line."""

        def place(match):
            line = int(match.group(1))
            start, path = [each for each in starts if each[0] < line][-1]
            return f"{path}:{line - start}:"

        return re.sub(re.escape(name) + r":(\d+):", place, said)

    def _findings(self, said):
        """The files of ours that findings are in, and whether one says that the code is no C++."""
        paths, broken = set(), False
        for line in said.splitlines():
            match = _FINDING.match(line)
            if match:
                paths.add(os.path.relpath(os.path.join(self.root, match.group(1)), self.root))
                broken = broken or "clang-diagnostic-error" in match.group(2)
        return paths, broken

    def check(self, unit):
        """(what clang-tidy said of the unit, the paths with findings)."""
        name, starts = self._write(unit) if len(unit) > 1 else (unit[0], [])
        done = self._run(["clang-tidy-14", "--quiet", name, "--", *self.flags])
        said = self._as_in_sources(done.stdout, name, starts) if starts else done.stdout
        paths, broken = self._findings(said)
        if len(unit) > 1 and (broken or (done.returncode != 0 and not paths)):
            said, paths = "", set()
            for path in unit:
                more, found = self.check([path])
                said += more
                paths |= found
            return said, paths
        if done.returncode != 0 and not paths:
            paths = {unit[0]}
        return said, paths

    def compile_alone(self, path):
        """What g++ says of a source without a precompiled header; empty if it compiles."""
        flags = [flag for flag in self.flags if flag not in CLANG_FLAGS]
        done = subprocess.run(
            ["g++", "-c", "-Wall", "-Wextra", "-Werror", *flags, path, "-o", "/dev/null"],
            cwd=self.root,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        return done.stderr if done.returncode != 0 else ""


def flags_of(root, more):
    """How clang reads a source of ours."""
    omp = subprocess.run(
        ["g++", "-print-file-name=include/omp.h"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return [
        "-std=c++20",
        "-O2",
        "-I.",
        "-I" + os.path.join(root, "bazel-bin"),
        # Kernels find the host's kernel_dialect.h by the include path.
        "-Inn_worker/device/host",
        *CLANG_FLAGS,
        "-DSPDLOG_SHARED_LIB",
        "-DSPDLOG_COMPILED_LIB",
        "-DSPDLOG_FMT_EXTERNAL",
        "-idirafter",
        os.path.dirname(omp),
        *more,
    ]


def main(arguments):
    root, cache, counts = arguments[:3]
    rest = arguments[3:]
    alone = "--alone" in rest
    more = [argument for argument in rest if argument.startswith("-isystem=")]
    files = [argument for argument in rest if not argument.startswith("-")]
    flags = flags_of(root, [part for flag in more for part in ("-isystem", flag.split("=", 1)[1])])
    tidy = Tidy(root, cache, flags)
    bad = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        if not alone:
            for said, paths in pool.map(tidy.check, units_of(files)):
                if paths:
                    print(said)
                bad |= paths
        for path, said in zip(files, pool.map(tidy.compile_alone, files)):
            if said:
                print(f"{path} does not compile by its own includes:\n{said}")
                bad.add(path)
    for path in sorted(bad):
        print(f"tidy: {path} has findings")
    print(f"tidy: {len(files)} files, {len(bad)} with findings")
    with open(counts, "w", encoding="utf-8") as file:
        file.write(f"{max(0, len(files) - len(bad))} {len(bad)}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
