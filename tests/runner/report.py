"""Counts the cases of test programs, from Bazel's summary and what the programs left.

A program that dies writes no account of its cases. Then those that had passed count as passed, and all
others that it was to run count as failed, so that no count falls silently.
"""

import glob
import os
import re
import subprocess
import xml.etree.ElementTree as ET

_LINE = re.compile(r"^(//\S+)\s+(.*)$")
_SECONDS = re.compile(r"\bin ([0-9.]+)s\b")
_STATS = re.compile(r"^\s+Stats over (\d+) runs: max = ([0-9.]+)s")
_SHARD = re.compile(r"shard_(\d+)_of_(\d+)")


class Counts:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.messages = []

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.messages += other.messages


class Target:
    """A line of Bazel's summary."""

    def __init__(self, label, line):
        self.label = label
        self.line = line
        match = _SECONDS.search(line)
        self.seconds = float(match.group(1)) if match else 0.0
        self.cached = "(cached)" in line
        # Runs of the program: one a shard and repetition.
        self.runs = 1

    @property
    def passed(self):
        return "PASSED" in self.line

    @property
    def ran(self):
        return self.passed or self.line.startswith(("FAILED in", "TIMEOUT", "FLAKY"))


def targets_of(summary):
    """The targets of the text that Bazel wrote."""
    targets = []
    for line in summary.splitlines():
        match = _LINE.match(line)
        if match and re.match(r"(\(cached\) )?(PASSED|FAILED|TIMEOUT|FLAKY|NO STATUS)", match.group(2)):
            targets.append(Target(match.group(1), match.group(2)))
            continue
        match = _STATS.match(line)
        if match and targets:
            targets[-1].runs = int(match.group(1))
            targets[-1].seconds = max(targets[-1].seconds, float(match.group(2)))
    return targets


def count_cases(root):
    """The counts of a test.xml that GoogleTest wrote, given its root element.

    Bazel's own account of any other program has one case.
    """
    counts = Counts()
    for case in root.iter("testcase"):
        if case.get("status") != "run" or case.get("result") == "skipped":
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            counts.failed += 1
        else:
            counts.passed += 1
    return counts


def _is_googletest(root):
    return root.tag == "testsuites" and root.get("name") == "AllTests"


def listed_cases(program, shard, test_filter):
    """The names of what a GoogleTest program would run; None if it is not one or does not start.

    shard: (index from 0, total), or None.
    """
    environment = {"PATH": os.environ.get("PATH", "")}
    if shard:
        environment["GTEST_SHARD_INDEX"], environment["GTEST_TOTAL_SHARDS"] = map(str, shard)
    command = [program, "--gtest_list_tests"]
    if test_filter:
        command.append("--gtest_filter=" + test_filter)
    try:
        with open(program, "rb") as file:
            if file.read(2) == b"#!":
                return None
        listed = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    names, suite = [], None
    for line in listed.splitlines():
        name = line.split("#")[0].rstrip()
        if line.startswith("  ") and suite:
            if not name.strip().startswith("DISABLED_") and not suite.startswith("DISABLED_"):
                names.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return names


def count_dead(log, listed):
    """The counts of a program that died, and the case that ran.

    log: what it printed. listed: the names of what it was to run.
    """
    counts = Counts()
    finished = set(re.findall(r"^\[       OK \] ([^ \n,(]+)", log, re.MULTILINE))
    skipped = set(re.findall(r"^\[  SKIPPED \] ([^ \n,(]+)", log, re.MULTILINE))
    failed = set(re.findall(r"^\[  FAILED  \] ([^ \n,(]+)", log, re.MULTILINE))
    started = re.findall(r"\[ RUN      \] (\S+)", log)
    counts.passed = len(finished)
    counts.failed = max(1, len(set(listed) - finished - skipped))
    if started and started[-1] not in finished | skipped | failed:
        counts.messages.append(f"it died in {started[-1]}")
    unreached = len(set(listed) - set(started))
    if unreached:
        counts.messages.append(f"{unreached} cases were not reached and count as failed")
    return counts


def _read(path):
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _accounts(folder, runs):
    """The test.xml of each run of a program. Those of earlier runs, which had other shards or
    repetitions, lie beside them."""
    plain = f"{folder}/test.xml"
    if runs == 1 and os.path.exists(plain):
        return [plain]
    of_one_run = {}
    for xml in sorted(glob.glob(f"{folder}/shard_*/test.xml") + glob.glob(f"{folder}/run_*/test.xml")):
        # What is left of "shard_1_of_4_run_2_of_3" without the numbers that differ.
        kind = re.sub(r"(shard|run)_\d+_of_", r"\1_of_", os.path.basename(os.path.dirname(xml)))
        of_one_run.setdefault(kind, []).append(xml)
    complete = [group for group in of_one_run.values() if len(group) == runs]
    return max(complete or of_one_run.values(), key=lambda group: os.path.getmtime(group[0]), default=[])


def count_target(target, testlogs, bin_folder, test_filter):
    """The counts of a target."""
    counts = Counts()
    path = target.label[2:].replace(":", "/")
    if target.ran:
        for xml in _accounts(f"{testlogs}/{path}", target.runs):
            try:
                root = ET.parse(xml).getroot()
            except ET.ParseError:
                root = None
            if root is None and target.passed:
                # Bazel's own account of a script, with what the script printed.
                counts.passed += 1
                continue
            if root is not None and (target.passed or _is_googletest(root)):
                counts.add(count_cases(root))
                continue
            match = _SHARD.search(xml)
            shard = (int(match.group(1)) - 1, int(match.group(2))) if match else None
            listed = listed_cases(f"{bin_folder}/{path}", shard, test_filter)
            if listed is None:
                # A script, or a program that does not start: one case.
                counts.failed += 1
            else:
                counts.add(count_dead(_read(os.path.dirname(xml) + "/test.log"), listed))
    if not target.passed:
        # One that was not built, or stopped before it began.
        if counts.failed == 0:
            counts.failed = 1
        about = "".join("; " + message for message in counts.messages)
        counts.messages = [f"failed: {target.label} ({target.line}{about})"]
    return counts


def slowest(targets, most=10):
    """Lines that name the slowest targets that ran, slowest first."""
    ran = [target for target in targets if not target.cached]
    ran.sort(key=lambda target: -target.seconds)
    return [f"  {target.seconds:7.1f} s  {target.label}" for target in ran[:most]]


def too_long(targets, most_share, least_targets=50):
    """A message for each target that takes more than its share of the seconds of all targets.

    It looks at whole runs of at least least_targets that ran, not at cached ones: a share of a few tests
    says nothing. Seconds would not do, because machines differ; a share does not depend on the machine.
    """
    ran = [target for target in targets if not target.cached and target.ran]
    total = sum(target.seconds for target in ran)
    if len(ran) < least_targets:
        return []
    return [
        f"too long: {target.label} took {target.seconds:.0f} s, more than {most_share:.0%} of the "
        f"{total:.0f} s of all tests; split it, or give it shards"
        for target in ran
        if target.seconds > most_share * total
    ]
