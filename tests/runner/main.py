"""Builds and runs tests, and counts their cases: what `./satrap test` and `./satrap check` do.

    main.py ROOT CACHE test [asan|ubsan|tsan|sanitizers|cuda-build] [host-device|TARGET|--OPTION]...
    main.py ROOT CACHE check PASSED FAILED [PHASE=SECONDS]...

check's numbers are clang-tidy's counts, and what the phases before took.

The last line is "N passed, N failed". The exit status is 0 if all passed and at least one ran.
"""

import os
import shutil
import subprocess
import sys
import time

from bazel import Bazel
from report import Counts, count_target, slowest, targets_of, too_long
from suites import filter_of

# The tag of tests that start all roles of a run. They wait much, so two run at a time, and alone: other
# tests would take their processor.
WHOLE_RUN = "whole_run"
WHOLE_RUNS_AT_A_TIME = 2
# The tag of tests that take too long for CI: `check` leaves them out. To Bazel `long` would also name a
# timeout.
NOT_IN_CI = "not_in_ci"
# Some of the other tests wait for processes, too. So one more runs than there are processors.
OTHERS_AT_A_TIME = (os.cpu_count() or 1) + 1
# The filters of tests that run under sanitizers, and under ThreadSanitizer: it does not know the threads
# that librdkafka makes with C's thrd_create, and crashes in them.
UNSANITIZED = "-no_sanitizer"
NOT_UNDER_TSAN = UNSANITIZED + ",-no_tsan"
# Of the seconds of all tests. A program that takes more makes a run with two processors wait for it.
MOST_SHARE = 0.10
EVERYTHING = ["//..."]
# Bazel's exit status if no test matches the filters.
NO_TESTS = 4
# Its exit status for an option that the command does not have.
BAD_OPTION = 2


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
        # These are merged with the runner's own.
        self.test_filter = self.take("test_filter")
        self.tag_filters = self.take("test_tag_filters")

    def take(self, name):
        """Removes the options --NAME=VALUE and returns the last value, or ""."""
        prefix = f"--{name}="
        own = [option[len(prefix) :] for option in self.options if option.startswith(prefix)]
        self.options = [option for option in self.options if not option.startswith(prefix)]
        return own[-1] if own else ""

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
        # A program compiles a source or the unit that it is part of (bazel/unit.bzl). A script may run a
        # file that it gets as an argument.
        tests = f"kind('_test rule', //{folder}:all)"
        compiled = f"kind('_test rule', rdeps(//{folder}:all, {label}, 2)) + attr(args, '/{name}\\b', {tests})"
        manual = set(self.bazel.query(f"attr(tags, '\\bmanual\\b', {compiled})"))
        programs = self.bazel.query(compiled)
        # What is tagged manual needs a toolkit or a card; a source may be in such a program alone.
        programs = [program for program in programs if program not in manual] or programs
        if not programs:
            raise Refused(f"{path} is not a source of a test in {folder}/BUILD")
        if not name.endswith(".cc"):
            self.targets += programs
            return
        program = programs[0]
        files = f"labels(srcs, {program})"
        sources = self.bazel.query(f"kind('source file', {files} + labels(srcs, {files}))")
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

    def __init__(self, bazel, cache, seconds, tag_filters=""):
        self.bazel = bazel
        self.tag_filters = tag_filters  # the user's own
        self.cache = cache
        self.seconds = seconds  # by phase, in order
        self.counts = Counts()
        self.targets = []
        self.status = 0

    def bazel_run(self, phase, command, config_options, tag_filters, arguments, may_be_none=False):
        """Runs Bazel and returns what it said. Of options that are given twice the last one counts, and
        a configuration has some of its own, so configurations come first."""
        begun = time.monotonic()
        filters = ",".join(each for each in (tag_filters, self.tag_filters) if each)
        status, said = self.bazel.run([
            command,
            "--keep_going",
            "--noshow_progress",
            "--color=no",
            "--curses=no",
            *config_options,
            *([f"--test_tag_filters={filters}"] if filters else []),
            *arguments,
        ])
        self.add_seconds(phase, begun)
        with open(os.path.join(self.cache, "test_summary.log"), "a", encoding="utf-8") as log:
            log.write(said)
        none = may_be_none and status == NO_TESTS
        # `bazel build` does not know all options of `bazel test`, which builds, too.
        unknown = command == "build" and status == BAD_OPTION
        if status != 0 and not none and not unknown:
            self.status = status
        return said

    def add_seconds(self, phase, begun):
        self.seconds[phase] = self.seconds.get(phase, 0) + time.monotonic() - begun

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
        # A build begins with reading all BUILD files, which the first query does for it.
        begun = time.monotonic()
        labels, tagged = self.tests_of(targets)
        whole_runs = labels & tagged(WHOLE_RUN)
        self.add_seconds("build", begun)
        others = labels - whole_runs
        # Then nothing is built any more, so the seconds of the other phases are those of tests.
        # With all tests, the programs that no test starts are built, too.
        only = [] if targets == EVERYTHING else ["--build_tests_only"]
        self.bazel_run("build", "build", config_options, "", [*only, *arguments])
        for phase, asked, tags, at_a_time in (
            ("tests", others or not whole_runs, f"-{WHOLE_RUN}" if whole_runs else "", OTHERS_AT_A_TIME),
            ("whole runs", whole_runs, WHOLE_RUN, WHOLE_RUNS_AT_A_TIME),
        ):
            if asked:
                # Bazel runs no more tests at a time than jobs, of which it has one for each processor.
                flags = [f"--local_test_jobs={at_a_time}", f"--jobs={at_a_time}"]
                said = self.bazel_run(
                    phase, "test", config_options, tags, [*flags, *arguments], bool(self.tag_filters)
                )
                begun = time.monotonic()
                self.count(said, config_options, test_filter)
                self.add_seconds(phase, begun)

    def tests_of(self, targets):
        """The labels of the tests that `bazel test` would run for these patterns, and a function that
        takes a tag and returns the labels of the tests that have it."""
        patterns = [pattern for pattern in targets if not pattern.startswith("-")]
        left_out = [pattern[1:] for pattern in targets if pattern.startswith("-")]
        tests = "tests(" + " + ".join(patterns) + "".join(" - " + pattern for pattern in left_out) + ")"

        def tagged(tag):
            return set(self.bazel.query(f"attr(tags, '\\b{tag}\\b', {tests})"))

        # Bazel runs a test with the tag `manual` only if its own label is given, not for a pattern.
        return set(self.bazel.query(tests)) - (tagged("manual") - set(patterns)), tagged

    def test_sanitized(self, options, config_options, targets, test_filter=""):
        """The same under a sanitizer: tests without the tag no_sanitizer (under ThreadSanitizer also without
        no_tsan), and none is a whole run."""
        filtered = [f"--test_filter={test_filter}"] if test_filter else []
        arguments = [*options, *filtered, "--", *targets]
        passes = [(UNSANITIZED, [], True)]
        if "--config=tsan" in config_options:
            labels, tagged = self.tests_of(targets)
            labels -= tagged("no_sanitizer") | tagged("no_tsan")
            grpc = labels & tagged("grpc")
            # ThreadSanitizer cannot place its shadow memory where the kernel randomises addresses widely.
            if can_fix_addresses():
                arguments.insert(0, "--run_under=setarch -R")
            suppressions = os.path.join(self.bazel.root, "tests/sanitizers/tsan.supp")
            passes = [
                (NOT_UNDER_TSAN + ",-grpc", [], labels != grpc),
                (
                    NOT_UNDER_TSAN + ",grpc",
                    [
                        "--test_env=TSAN_OPTIONS=ignore_noninstrumented_modules=1:suppressions="
                        + suppressions
                    ],
                    grpc,
                ),
            ]
        for tags, flags, asked in passes:
            # Bazel calls it an error if no test is left.
            if asked:
                said = self.bazel_run(
                    "tests", "test", config_options, tags, [*flags, *arguments], may_be_none=True
                )
                self.count(said, config_options, test_filter)


def can_fix_addresses():
    """Whether `setarch -R` works here."""
    return bool(shutil.which("setarch")) and subprocess.call(
        ["setarch", "-R", "true"], stderr=subprocess.DEVNULL
    ) == 0


def cuda_tests():
    """What `./satrap test cuda-build` runs: tagged manual, so that patterns such as //... leave it out."""
    return [
        "//nn_worker/device/kernels:cubins_test",
        "//nn_worker/device/cuda:cuda_device_test",
        "//nn_worker/device/cuda:cublaslt_plan_test",
        "//nn_worker/collective:nccl_collective_test",
        "//nn_worker:nn_worker_cuda_test",
        "//nn_worker/backend/testing:cuda_conformance_test",
        "//nn_worker/backend/benchmark:algorithm_table_cuda_test",
        "//nn_worker/backend/benchmark:kernel_benchmark_cuda_test",
        "//nn_worker/backend/benchmark:step_benchmark_cuda_test",
        "//nn_worker/layer:cuda_layer_test",
        "//nn_worker/trainer/testing:cuda_training_test",
    ]


def kafka_options(cache):
    """Options that name the broker's jars, so that what was skipped without them runs once they are there."""
    options = []
    if os.environ.get("SATRAP_REQUIRE_KAFKA"):
        # Tests that find no broker then fail instead of skipping.
        options.append("--test_env=SATRAP_REQUIRE_KAFKA=1")
    jars = os.environ.get("SATRAP_KAFKA_JARS") or os.path.join(cache, "kafka/jars")
    if os.path.isdir(jars) and shutil.which("java"):
        options.append(f"--test_env=SATRAP_KAFKA_JARS={jars}")
    else:
        print("satrap: tests that need a Kafka broker are skipped; ./setup kafka fetches one")
    return options


def kubernetes_options(root):
    """Options that name the programs of a Kubernetes cluster. Only who asks for it has one started, because it
    belongs to the whole machine."""
    if not os.environ.get("SATRAP_REQUIRE_KUBERNETES"):
        print(
            "satrap: tests that need Kubernetes are skipped; after ./setup kubernetes,"
            " SATRAP_REQUIRE_KUBERNETES=1 runs them"
        )
        return []
    options = ["--test_env=SATRAP_REQUIRE_KUBERNETES=1"]
    found = subprocess.run(
        [os.path.join(root, "tests/pods/cluster/build"), "--folder"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode == 0:
        options.append(f"--test_env=SATRAP_KUBERNETES={found.stdout.strip()}")
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
    options = [option for option in options if option not in config_options]
    targets = list(request.targets) + (cuda_tests() if request.cuda else [])
    if not targets and not request.files:
        # Under a sanitizer, the unit tests: those of tests/ start many processes and take hours.
        targets = EVERYTHING if config == "plain" else [*EVERYTHING, "-//tests/..."]
    if config == "plain":
        test = run.test
    else:
        print(f"satrap: tests under {config}")
        config_options.insert(0, f"--config={config}")
        test = run.test_sanitized
    if targets:
        test(options, config_options, targets, request.test_filter)
    # A program at a time, since a filter is for all programs of a call.
    for program in sorted({program for _, program, _ in request.files}):
        of_program = [file for file in request.files if file[1] == program]
        cases = request.test_filter or ":".join(cases for _, _, cases in of_program)
        before = run.counts.passed + run.counts.failed
        test(options, config_options, [program], cases)
        if run.counts.passed + run.counts.failed == before:
            paths = ", ".join(path for path, _, _ in of_program)
            run.counts.failed += 1
            run.counts.messages.append(f"no test of {paths} ran")


def print_report(runs, seconds, whole):
    """Prints what failed, where the time went, and the counts. Returns whether all is well."""
    total = Counts()
    for run in runs:
        if run.status != 0 and run.counts.failed == 0:
            run.counts.failed = 1
            run.counts.messages.append(f"Bazel's exit status is {run.status}")
        total.add(run.counts)
    targets = [target for run in runs for target in run.targets]
    if whole and not any(target.cached for target in targets):
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
            seconds[name] = seconds.get(name, 0) + float(value)
        rest = []
    request = Request(bazel, rest)
    if command == "check":
        request.tag_filters = f"-{NOT_IN_CI}"
    options = (cuda_options(cache) if request.cuda else []) + request.options
    options += kafka_options(cache) + kubernetes_options(root)
    open(os.path.join(cache, "test_summary.log"), "w", encoding="utf-8").close()
    runs = []
    for config in request.configs:
        run = Run(bazel, cache, seconds, request.tag_filters)
        runs.append(run)
        run_config(request, config, options, run)
    whole = request.configs == ["plain"] and not (request.targets or request.files or request.cuda)
    total = print_report(runs, seconds, whole)
    ran = total.passed + total.failed > 0
    if not ran:
        print("no test ran")
    total.add(before)
    print(f"{total.passed} passed, {total.failed} failed")
    return 0 if ran and total.failed == 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Refused as refused:
        sys.exit(f"satrap: {refused}")
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(f"satrap: {error.cmd} failed")
