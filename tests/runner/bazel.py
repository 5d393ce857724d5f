"""Runs Bazel in a checkout."""

import subprocess
import sys


class Bazel:
    def __init__(self, root):
        self.root = root

    def query(self, expression):
        """The labels of a query. Raises subprocess.CalledProcessError, with Bazel's words on stderr."""
        return self._lines(["query", "--noshow_progress", expression])

    def info(self, key, options):
        lines = self._lines(["info", *options, key])
        return lines[0] if lines else ""

    def _lines(self, arguments):
        done = subprocess.run(
            ["bazel", *arguments], cwd=self.root, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.stderr.write(done.stderr)
            raise subprocess.CalledProcessError(done.returncode, "bazel " + arguments[0])
        return done.stdout.split("\n")[:-1] if done.stdout else []

    def run(self, arguments):
        """Runs Bazel, shows what it says, and returns (its exit status, what it said)."""
        process = subprocess.Popen(
            ["bazel", *arguments],
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        said = []
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            said.append(line)
        return process.wait(), "".join(said)
