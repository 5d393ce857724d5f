"""Builds and runs tests, and counts their cases: what `./satrap test` and `./satrap check` do.

    main.py ROOT CACHE test [asan|ubsan|tsan|sanitizers|cuda-build] [TARGET|--OPTION]...
    main.py ROOT CACHE check [tidy's counts: PASSED FAILED]

The last line is "N passed, N failed". The exit status is 0 if all passed and at least one ran.
"""

import os
import shutil
import subprocess
import sys
import time

from bazel import Bazel, environment
from report import Counts, count_target, slowest, targets_of, too_long
from suites import filter_of

# The tag of tests that start all roles of a run. They wait much, so two run at a time, and alone: other
# tests would take their processor.
WHOLE_RUN = "whole_run"
WHOLE_RUNS_AT_A_TIME = 2
# Of the seconds of all tests. A program that takes more makes a run with two processors wait for it.
MOST_SHARE = 0.10
# Bazel's exit status if no test matches the filters.
NO_TESTS = 4


class Refused(Exception):
    """What the user asked for cannot be done; the message says why."""


class Request:
    """What the arguments of `./satrap test` ask for."""

    def __init__(self, bazel, arguments):
        self.bazel = bazel
        self.configs = ["plain"]
        self.options = []
        self.targets = []
        self.files = []  # (file, program, filter)
        self.cuda = False
        if arguments and arguments[0] in ("asan", "ubsan", "tsan"):
            self.configs = [arguments.pop(0)]
        elif arguments and arguments[0] == "sanitizers":
            self.configs = ["asan_ubsan", "tsan"]
            arguments.pop(0)
        elif arguments and arguments[0] == "cuda-build":
            self.cuda = True
            arguments.pop(0)
        for argument in arguments:
            if argument.startswith("--"):
                self.options.append(argument)
            elif argument == "host-device":
                self.targets += self._host_device()
            else:
                self._add(argument)

    def own_filter(self):
        """The user's own --test_filter, or ""."""
        own = [option for option in self.options if option.startswith("--test_filter=")]
        return own[-1].split("=", 1)[1] if own else ""

    def _host_device(self):
        # They are tagged so (tests/style/check.sh tags).
        labels = self.bazel.query(r"attr(tags, '\bhost_device\b', tests(//...))")
        if not labels:
            raise Refused(f"no test in {self.bazel.root} is tagged host_device")
        return labels

    def _add(self, typed):
        path = typed[2:] if typed.startswith("./") else typed
        path = path.rstrip("/")
        here = os.path.join(self.bazel.root, path)
        if ":" in path or path.startswith(("//", "-//")):
            self.targets.append(path)
        elif os.path.isdir(here):
            self.targets.append(f"//{path}/...")
        elif os.path.isfile(here):
            self._add_file(path)
        else:
            raise Refused(f"there is no folder, test file or label '{typed}' in {self.bazel.root}")

    def _add_file(self, path):
        folder, name = os.path.split(path)
        label = f"//{folder}:{name}"
        programs = self.bazel.query(
            f"kind('_test rule', attr(srcs, '{label}', //{folder}:all))"
            f" except attr(tags, '\\bmanual\\b', //{folder}:all)"
        )
        if not programs:
            raise Refused(f"{path} is no source of a test in {folder}/BUILD")
        program = programs[0]
        if not name.endswith(".cc"):
            self.targets.append(program)
            return
        sources = self.bazel.query(f"labels(srcs, {program})")
        others = [self._read(source) for source in sources if source != label]
        cases = filter_of(self._read(label), others)
        if not cases:
            raise Refused(f"{path} has no tests of its own; try {program}")
        self.files.append((path, program, cases))

    def _read(self, label):
        with open(os.path.join(self.bazel.root, label[2:].replace(":", "/")), encoding="utf-8") as file:
            return file.read()


class Run:
    """Runs tests under one configuration, and counts them."""

    def __init__(self, bazel, cache, seconds):
        self.bazel = bazel
        self.cache = cache
        self.seconds = seconds  # by phase, in order
        self.counts = Counts()
        self.targets = []
        self.status = 0

    def bazel_run(self, phase, command, arguments, may_be_none=False):
        begun = time.monotonic()
        status, said = self.bazel.run(
            [command, "--keep_going", "--noshow_progress", "--color=no", "--curses=no", *arguments]
        )
        self.seconds[phase] = self.seconds.get(phase, 0) + time.monotonic() - begun
        with open(os.path.join(self.cache, "test_summary.log"), "a", encoding="utf-8") as log:
            log.write(said)
        if status != 0 and not (may_be_none and status == NO_TESTS):
            self.status = status
        return said

    def count(self, said, config_options, test_filter):
        targets = targets_of(said)
        testlogs = self.bazel.info("bazel-testlogs", config_options)
        binaries = self.bazel.info("bazel-bin", config_options)
        for target in targets:
            self.counts.add(count_target(target, testlogs, binaries, test_filter))
        self.targets += targets

    def test(self, options, config_options, targets, test_filter=""):
        """One `bazel test` of targets, those that are whole runs after the others."""
        filtered = [f"--test_filter={test_filter}"] if test_filter else []
        arguments = [*options, *filtered, "--", *targets]
        self.bazel_run("build", "build", ["--build_tests_only", *arguments])
        whole_runs, others = self.whole_runs_of(targets)
        # Nothing is built any more, so the seconds are those of tests.
        if others or not whole_runs:
            flags = [f"--test_tag_filters=-{WHOLE_RUN}"] if whole_runs else []
            said = self.bazel_run("tests", "test", [*flags, *arguments])
            self.count(said, config_options, test_filter)
        if whole_runs:
            flags = [f"--test_tag_filters={WHOLE_RUN}", f"--local_test_jobs={WHOLE_RUNS_AT_A_TIME}"]
            said = self.bazel_run("whole runs", "test", [*flags, *arguments])
            self.count(said, config_options, test_filter)

    def whole_runs_of(self, targets):
        """(the labels of the whole runs, those of the other tests) among Bazel patterns."""
        patterns = [pattern for pattern in targets if not pattern.startswith("-")]
        left_out = [pattern[1:] for pattern in targets if pattern.startswith("-")]
        tests = "tests(" + " + ".join(patterns) + "".join(" - " + pattern for pattern in left_out) + ")"
        whole_runs = self.bazel.query(f"attr(tags, '\\b{WHOLE_RUN}\\b', {tests})")
        return whole_runs, sorted(set(self.bazel.query(tests)) - set(whole_runs))

    def test_sanitized(self, config, options, config_options, targets, test_filter=""):
        filtered = [f"--test_filter={test_filter}"] if test_filter else []
        arguments = [*options, *filtered, "--", *targets]
        if config != "tsan":
            said = self.bazel_run("tests", "test", arguments)
            self.count(said, config_options, test_filter)
            return
        # ThreadSanitizer cannot place its shadow memory where the kernel randomises addresses widely.
        if shutil.which("setarch") and subprocess.call(
            ["setarch", "-R", "true"], stderr=subprocess.DEVNULL
        ) == 0:
            arguments.insert(0, "--run_under=setarch -R")
        suppressions = os.path.join(self.bazel.root, "tests/sanitizers/tsan.supp")
        for flags in (
            ["--test_tag_filters=-no_sanitizer,-grpc"],
            [
                "--test_tag_filters=-no_sanitizer,grpc",
                "--test_env=TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions="
                + suppressions,
            ],
        ):
            said = self.bazel_run("tests", "test", [*flags, *arguments], may_be_none=True)
            self.count(said, config_options, test_filter)


def cuda_tests():
    """What `./satrap test cuda-build` runs: tagged manual, so that patterns such as //... leave it out."""
    return [
        "//nn_worker/device/kernels:cubins_test",
        "//nn_worker/device/cuda:cuda_device_test",
        "//nn_worker/device/cuda:cublaslt_plan_test",
        "//nn_worker/collective:nccl_collective_test",
        "//nn_worker:nn_worker_cuda_test",
        "//nn_worker/backend:cuda_conformance_test",
        "//nn_worker/backend:kernel_benchmark_cuda_test",
        "//nn_worker/layer:cuda_layer_test",
        "//nn_worker/models:cuda_training_test",
        "//nn_worker/models:step_benchmark_cuda_test",
    ]


def kafka_options(cache):
    """Options that name the broker's jars, so that what was skipped without them runs once they are there."""
    options = []
    if environment("SATRAP_REQUIRE_KAFKA"):
        # Tests that find no broker then fail instead of skipping.
        options.append("--test_env=SATRAP_REQUIRE_KAFKA=1")
    jars = environment("SATRAP_KAFKA_JARS") or os.path.join(cache, "kafka/jars")
    if os.path.isdir(jars) and shutil.which("java"):
        options.append(f"--test_env=SATRAP_KAFKA_JARS={jars}")
    else:
        print("satrap: tests that need a Kafka broker are skipped; ./setup kafka fetches one")
    return options


def cuda_options(cache):
    with open(os.path.join(cache, "cuda/bazelrc"), encoding="utf-8") as file:
        toolkit = file.read().split(":toolkit=")[1].split()[0]
    # cuBLASLt and NCCL are opened at run time.
    libraries = f"{toolkit}/lib64:{toolkit}/lib:{toolkit}/../nccl/lib"
    return [f"--test_env=CUDA_TOOLKIT={toolkit}", f"--test_env=LD_LIBRARY_PATH={libraries}"]


def run_config(request, config, options, run):
    """Runs what was asked for under one configuration."""
    config_options = [option for option in options if option.startswith("--config=")]
    targets = list(request.targets)
    if request.cuda:
        targets += cuda_tests()
    if not targets and not request.files:
        # Under a sanitizer, the unit tests: those of tests/ start many processes and take hours.
        targets = ["//..."] if config == "plain" else ["//...", "-//tests/..."]
    if config == "plain":
        test = run.test
    else:
        print(f"satrap: tests under {config}")
        options = [f"--config={config}", *options]
        config_options.insert(0, f"--config={config}")

        def test(*arguments):
            run.test_sanitized(config, *arguments)

    if targets:
        test(options, config_options, targets)
    if request.files:
        own = request.own_filter()
        cases = own or ":".join(file[2] for file in request.files)
        before = len(run.targets)
        test(
            [option for option in options if not option.startswith("--test_filter=")],
            config_options,
            sorted({file[1] for file in request.files}),
            cases,
        )
        for path, program, _ in request.files:
            ran = [target for target in run.targets[before:] if target.label == program]
            if not ran:
                run.counts.failed += 1
                run.counts.messages.append(f"no test of {path} ran")


def print_report(runs, seconds, whole):
    """Prints what failed, where the time went, and the counts. Returns whether all is well."""
    total = Counts()
    for run in runs:
        if run.status != 0 and run.counts.failed == 0:
            run.counts.failed = 1
            run.counts.messages.append(f"Bazel's exit status is {run.status}")
        total.add(run.counts)
    targets = [target for run in runs for target in run.targets]
    if whole:
        for message in too_long(targets, MOST_SHARE):
            total.failed += 1
            total.messages.append(message)
    for message in total.messages:
        print(message)
    if whole:
        print("seconds: " + ", ".join(f"{name} {value:.0f}" for name, value in seconds.items()))
        print("slowest tests:")
        for line in slowest(targets):
            print(line)
    return total


def main(arguments):
    root, cache, command = arguments[:3]
    bazel = Bazel(root)
    seconds = {}
    before = Counts()
    rest = list(arguments[3:])
    if command == "check":
        before.passed, before.failed = int(rest[0]), int(rest[1])
        for phase in rest[2:]:
            name, value = phase.split("=")
            seconds[name] = float(value)
        rest = []
    request = Request(bazel, rest)
    options = (cuda_options(cache) if request.cuda else []) + request.options + kafka_options(cache)
    open(os.path.join(cache, "test_summary.log"), "w", encoding="utf-8").close()
    runs = []
    for config in request.configs:
        run = Run(bazel, cache, seconds)
        runs.append(run)
        run_config(request, config, options, run)
    total = print_report(runs, seconds, whole=command == "check" or not (request.targets or request.files))
    if total.passed + total.failed == 0:
        print("no test ran")
        total.failed = 0
        print("0 passed, 0 failed")
        return 1
    total.add(before)
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if total.failed == 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as refused:
        sys.exit(f"satrap: {refused}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"satrap: {error.cmd} failed")
