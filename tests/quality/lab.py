"""What checks are made of: training a job, running a test, and judging a figure by its gate."""

import collections
import json
import math
import os
import shlex
import shutil
import subprocess
import time

Gate = collections.namedtuple("Gate", "text holds")
Figure = collections.namedtuple("Figure", "check what value gate passed seeds seconds")


def at_least(bound):
    return Gate(f">= {bound:.6g}", lambda x: x >= bound)


def at_most(bound):
    return Gate(f"<= {bound:.6g}", lambda x: x <= bound)


def near(centre, tolerance):
    return Gate(f"{centre:.6g} +- {tolerance:g}", lambda x: abs(x - centre) <= tolerance)


def mean(values):
    return sum(values) / len(values)


class Failed(Exception):
    """A command that did not end well, or a report that lacks a figure."""


class Report(dict):
    """report.json of a run. Figures are read by a path: report["test.auc"]."""

    def __getitem__(self, path):
        value = self
        for name in path.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        # JSON has no NaN, so a figure that is not a number is null.
        if value is None:
            raise Failed(f"the report has no {path}")
        return value


class Lab:
    """Runs commands for one check after another, and keeps the figures that they are judged by.

    Each command is printed before it runs, each figure as soon as it is judged.
    """

    def __init__(self, satrap, root, data, work):
        self.satrap_text = satrap
        self.satrap = shlex.split(satrap)
        self.root = root
        self.data = data
        self.work = work
        self.figures = []
        self._check = None
        self._seeds = []
        self._seconds = 0.0

    def begin(self, check):
        self._check = check
        self._seeds, self._seconds = [], 0.0

    def train(self, job, *sets, seed=1, data=None):
        """Trains a job, with the data set `data` as its data_root, and returns its report."""
        run_dir = os.path.join(self.work, "run")
        command = self.satrap + ["train", job, "--run_dir", run_dir, "--set", f"seed={seed}"]
        if data:
            command += ["--set", "data_root=" + os.path.join(self.data, data)]
        for each in sets:
            command += ["--set", each]
        try:
            self.run(command, seed)
            with open(os.path.join(run_dir, "report.json"), encoding="utf-8") as file:
                return json.load(file, object_hook=Report)
        except (OSError, ValueError) as error:
            raise Failed(f"no report: {error}") from error
        finally:
            shutil.rmtree(run_dir, ignore_errors=True)

    def run(self, command, seed=None):
        """Runs a command in the checkout and returns what it prints."""
        if seed is not None and seed not in self._seeds:
            self._seeds.append(seed)
        print("  $", shlex.join(command), flush=True)
        begin = time.monotonic()
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
        self._seconds += time.monotonic() - begin
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).splitlines()
            raise Failed(f"exit code {done.returncode}: " + " / ".join(lines[-3:]))
        return done.stdout

    def bazel_test(self, what, target, cases):
        """Cases of a test program that hold the figures themselves: 1 if they pass."""
        self.run([
            "bazel",
            "test",
            "--ui_event_filters=-info",
            "--noshow_progress",
            f"--test_filter={cases}",
            target,
        ])
        self.judge(what, 1, at_least(1))

    def judge(self, what, value, gate):
        value = float(value)
        self._keep(what, value, gate.text, math.isfinite(value) and gate.holds(value))

    def show(self, what, value):
        """A figure without a gate."""
        self._keep(what, float(value), "", True)

    def fail(self, why):
        """The check cannot go on."""
        self._keep(why, math.nan, "", False)

    def _keep(self, what, value, gate, passed):
        figure = Figure(self._check, what, value, gate, passed, tuple(self._seeds), self._seconds)
        self.figures.append(figure)
        print(line_of(figure), flush=True)
        self._seeds, self._seconds = [], 0.0


def line_of(figure):
    seeds = "seed " + ",".join(map(str, figure.seeds)) if figure.seeds else ""
    verdict = "ok" if figure.passed else "MISSED"
    return (f"{verdict:6}  {figure.check + ': ' + figure.what:64}  {figure.value:<9.6g}"
            f"  {figure.gate:18}  {seeds:12}  {figure.seconds:6.0f} s")
