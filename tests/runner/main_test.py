"""Tests of main.py, with a stand-in for Bazel."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import main


class FakeBazel:
    """Answers as Bazel would in a checkout with two programs: common/a_test of two sources, and b_test."""

    def __init__(self, root, said):
        self.root = root
        self.said = said  # by the tag filter of a test
        self.calls = []
        self.of_build = (0, "")
        self.manual = []
        self.grpc = []
        self.unsanitized = []
        self.not_under_tsan = []
        self.whole_runs = ["//common:b_test"] if "--test_tag_filters=whole_run" in said else []

    def query(self, expression):
        if expression.startswith("tests("):
            return ["//common:a_test"] + self.whole_runs + self.grpc
        for tag, labels in (("whole_run", self.whole_runs), ("manual", self.manual),
                            ("grpc", self.grpc), ("no_sanitizer", self.unsanitized),
                            ("no_tsan", self.not_under_tsan)):
            if f"\\b{tag}\\b" in expression:
                return labels
        if "labels(srcs, labels(srcs" in expression:
            return ["//common:x_test.cc", "//common:y_test.cc"]
        if "labels(srcs" in expression:
            return ["//common:a_test_unit1_test"]
        if "x_test.cc" in expression or "y_test.cc" in expression:
            return ["//common:a_test"]
        if "host_device" in expression:
            return ["//common:a_test"]
        if "script_test.sh" in expression:
            return ["//common:script_test"]
        return []

    def info(self, key, options):
        return os.path.join(self.root, key)

    def run(self, arguments):
        self.calls.append(arguments)
        if arguments[0] == "build":
            return self.of_build
        for tag_filter, answer in self.said.items():
            if any(argument == tag_filter for argument in arguments):
                return answer
        return self.said.get("", (0, ""))


class MainTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.makedirs(self.root + "/common")
        for name, text in (("x", "TEST(X, One) {\n"), ("y", "TEST(Y, One) {\n"), ("none", "int a;\n")):
            with open(f"{self.root}/common/{name}_test.cc", "w", encoding="utf-8") as file:
                file.write(text)
        with open(f"{self.root}/common/script_test.sh", "w", encoding="utf-8") as file:
            file.write("exit 0\n")
        # Says whether the programs of a cluster are there.
        self.write_build_of_the_cluster("echo /programs; exit 3\n")
        self.write_xml("a_test", 2)
        self.said_of_build = (0, "")
        self.manual = []
        self.grpc = []
        self.unsanitized = []
        self.not_under_tsan = []

    def write_build_of_the_cluster(self, script):
        path = self.root + "/tests/pods/cluster/build"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def write_xml(self, program, cases):
        folder = f"{self.root}/bazel-testlogs/common/{program}"
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/test.xml", "w", encoding="utf-8") as file:
            file.write('<testsuites name="AllTests">')
            file.writelines(f'<testcase name="c{i}" status="run"/>' for i in range(cases))
            file.write("</testsuites>")

    def run_main(self, *arguments, said=None):
        """(exit status, lines printed). said: what `bazel test` says, by its tag filter."""
        if said is None:
            said = {"": (0, "//common:a_test PASSED in 1.0s\n")}
        self.bazel = FakeBazel(self.root, said)
        self.bazel.of_build = self.said_of_build
        self.bazel.manual = self.manual
        self.bazel.grpc = self.grpc
        self.bazel.unsanitized = self.unsanitized
        self.bazel.not_under_tsan = self.not_under_tsan
        out = io.StringIO()
        with mock.patch.object(main, "Bazel", lambda root: self.bazel), contextlib.redirect_stdout(out):
            status = main.main([self.root, self.root, *arguments])
        return status, out.getvalue().splitlines()

    def bazel_tests(self):
        return [call for call in self.bazel.calls if call[0] == "test"]

    def test_builds_then_tests_one_more_than_processors_then_whole_runs_two_at_a_time(self):
        self.write_xml("b_test", 3)
        status, lines = self.run_main("test", said={
            "--test_tag_filters=-whole_run": (0, "//common:a_test PASSED in 1.0s\n"),
            "--test_tag_filters=whole_run": (0, "//common:b_test PASSED in 9.0s\n"),
        })
        self.assertEqual((status, lines[-1]), (0, "5 passed, 0 failed"))
        self.assertEqual([call[0] for call in self.bazel.calls], ["build", "test", "test"])
        self.assertIn("--local_test_jobs=2", self.bazel_tests()[1])
        for option in ("--local_test_jobs", "--jobs"):
            self.assertIn(f"{option}={os.cpu_count() + 1}", self.bazel_tests()[0])
        self.assertTrue(any(line.startswith("seconds: build ") for line in lines))
        self.assertIn("      9.0 s  //common:b_test", lines)

    def test_a_check_leaves_out_the_long_tests(self):
        self.write_xml("b_test", 3)
        status, lines = self.run_main("check", "1", "0", "setup=7", said={
            "--test_tag_filters=-whole_run,-not_in_ci": (0, "//common:a_test PASSED in 1.0s\n"),
            "--test_tag_filters=whole_run,-not_in_ci": (0, "//common:b_test PASSED in 9.0s\n"),
            "--test_tag_filters=whole_run": (0, ""),
        })
        self.assertEqual((status, lines[-1]), (0, "6 passed, 0 failed"))

    def test_each_step_is_in_a_phase(self):
        self.write_xml("b_test", 3)
        now = 0

        def takes(seconds, real):
            def call(*arguments):
                nonlocal now
                now += seconds
                return real(*arguments)

            return call

        with mock.patch.object(main.time, "monotonic", lambda: now), \
                mock.patch.object(FakeBazel, "query", takes(10, FakeBazel.query)), \
                mock.patch.object(FakeBazel, "info", takes(100, FakeBazel.info)), \
                mock.patch.object(FakeBazel, "run", takes(1000, FakeBazel.run)):
            _, lines = self.run_main("test", said={
                "--test_tag_filters=-whole_run": (0, "//common:a_test PASSED in 1.0s\n"),
                "--test_tag_filters=whole_run": (0, "//common:b_test PASSED in 9.0s\n"),
            })
        # Three queries before the build, and two places of Bazel's outputs after each of the others.
        self.assertIn("seconds: build 1030, tests 1200, whole runs 1200", lines)
        self.assertEqual(now, 1030 + 1200 + 1200)

    def test_a_source_runs_its_suites_alone(self):
        status, lines = self.run_main("test", "common/x_test.cc")
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
        call = self.bazel_tests()[0]
        chosen = [argument for argument in call if argument.startswith("--test_filter=")]
        self.assertEqual(len(chosen), 1)
        self.assertIn("X.*", chosen[0])
        self.assertNotIn("Y.*", chosen[0])
        self.assertEqual(call[-1], "//common:a_test")

    def test_sources_of_one_program_run_at_once(self):
        self.run_main("test", "common/x_test.cc", "./common/y_test.cc")
        chosen = [argument for argument in self.bazel_tests()[0] if argument.startswith("--test_filter=")]
        self.assertIn("X.*", chosen[0])
        self.assertIn("Y.*", chosen[0])
        self.assertEqual(self.bazel_tests()[0].count("//common:a_test"), 1)

    def test_a_filter_of_the_users_own_is_taken_for_that_of_the_source(self):
        self.run_main("test", "common/x_test.cc", "--test_filter=X.One")
        chosen = [argument for argument in self.bazel_tests()[0] if argument.startswith("--test_filter=")]
        self.assertEqual(chosen, ["--test_filter=X.One"])

    def test_a_folder_and_a_source_are_run_apart(self):
        self.run_main("test", "common", "common/x_test.cc")
        filters = [
            [argument for argument in call if argument.startswith("--test_filter=")]
            for call in self.bazel_tests()
        ]
        self.assertEqual([len(chosen) for chosen in filters], [0, 1])
        self.assertEqual(self.bazel_tests()[0][-1], "//common/...")

    def test_nothing_that_ran_is_no_success(self):
        self.write_xml("a_test", 0)
        status, lines = self.run_main("test", "common/x_test.cc", "--test_filter=Nothing")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-2:], ["no test of common/x_test.cc ran", "0 passed, 1 failed"])
        status, lines = self.run_main("test", "common", "--test_filter=Nothing")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-2:], ["no test ran", "0 passed, 0 failed"])

    def test_refuses_what_is_no_test(self):
        for typed, message in (
            ("common/missing_test.cc", "there is no folder, test file or label"),
            ("common/none_test.cc", "is not a source of a test"),
        ):
            with self.assertRaisesRegex(main.Refused, message):
                self.run_main("test", typed)

    def test_a_script_is_run_by_its_label(self):
        self.run_main("test", "common/script_test.sh")
        self.assertEqual(self.bazel_tests()[0][-1], "//common:script_test")

    def test_bazels_own_failure_is_a_failure(self):
        status, lines = self.run_main("test", said={"": (1, "//common:a_test PASSED in 1.0s\n")})
        self.assertEqual((status, lines[-1]), (1, "2 passed, 1 failed"))

    def test_check_counts_what_was_checked_before(self):
        status, lines = self.run_main("check", "30", "0", "clang-tidy=12")
        self.assertEqual((status, lines[-1]), (0, "32 passed, 0 failed"))
        self.assertTrue(any(line.startswith("seconds: clang-tidy 12, build") for line in lines))
        _, lines = self.run_main("check", "30", "0", "setup=7", "clang-tidy=12", "setup=5")
        self.assertTrue(any(line.startswith("seconds: setup 12, clang-tidy 12, build") for line in lines))
        status, lines = self.run_main("check", "30", "1")
        self.assertEqual((status, lines[-1]), (1, "32 passed, 1 failed"))

    def test_thread_sanitizer_runs_grpcs_tests_apart(self):
        self.write_xml("b_test", 3)
        self.grpc = ["//common:b_test"]
        status, lines = self.run_main("test", "tsan", "common", said={
            "--test_tag_filters=-no_sanitizer,-no_tsan,-grpc": (0, "//common:a_test PASSED in 1.0s\n"),
            "--test_tag_filters=-no_sanitizer,-no_tsan,grpc": (0, "//common:b_test PASSED in 1.0s\n"),
        })
        self.assertEqual((status, lines[-1]), (0, "5 passed, 0 failed"))
        self.assertEqual(len(self.bazel_tests()), 2)
        for call in self.bazel_tests():
            tags = [argument for argument in call if argument.startswith("--test_tag_filters=")]
            # The configuration has a filter of its own, and of two the last one counts.
            self.assertLess(call.index("--config=tsan"), call.index(tags[0]))
            self.assertEqual(len(tags), 1)

    def test_thread_sanitizer_asks_for_no_kind_of_tests_that_a_folder_does_not_have(self):
        none = (4, "ERROR: No test targets were found, yet testing was requested\n")
        passed = (0, "//common:a_test PASSED in 1.0s\n")
        for grpc, tags in (([], "-grpc"), (["//common:a_test"], "grpc")):
            self.grpc = grpc
            filters = f"--test_tag_filters=-no_sanitizer,-no_tsan,{tags}"
            status, lines = self.run_main("test", "tsan", "common", said={"": none, filters: passed})
            self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))
            self.assertEqual([filters in call for call in self.bazel_tests()], [True])
            self.assertFalse(any("No test targets" in line for line in lines), lines)

    def test_nothing_runs_under_a_sanitizer_if_no_test_may(self):
        self.unsanitized = ["//common:a_test"]
        status, lines = self.run_main("test", "tsan", "common", said={"": (4, "")})
        self.assertEqual((status, lines[-2:]), (1, ["no test ran", "0 passed, 0 failed"]))
        self.assertEqual(self.bazel_tests(), [])

    def test_what_thread_sanitizer_cannot_run_is_left_out_under_it_alone(self):
        self.not_under_tsan = ["//common:a_test"]
        status, lines = self.run_main("test", "tsan", "common", said={"": (4, "")})
        self.assertEqual((status, lines[-2:]), (1, ["no test ran", "0 passed, 0 failed"]))
        self.assertEqual(self.bazel_tests(), [])
        status, lines = self.run_main("test", "asan", "common", said={
            "--test_tag_filters=-no_sanitizer": (0, "//common:a_test PASSED in 1.0s\n"),
        })
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))

    def test_a_folder_of_whole_runs_and_manual_tests_has_no_other_phase(self):
        self.write_xml("b_test", 3)
        self.manual = ["//common:a_test"]
        status, lines = self.run_main("test", "common", said={
            "--test_tag_filters=-whole_run": (4, "ERROR: No test targets were found\n"),
            "--test_tag_filters=whole_run": (0, "//common:b_test PASSED in 9.0s\n"),
        })
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))
        self.assertEqual(len(self.bazel_tests()), 1)

    def test_the_users_own_tag_filter_is_added_to_those_of_the_phases(self):
        self.write_xml("b_test", 1)
        self.run_main("test", "--test_tag_filters=kafka", said={
            "--test_tag_filters=-whole_run,kafka": (0, "//common:a_test PASSED in 1.0s\n"),
            "--test_tag_filters=whole_run,kafka": (4, ""),
            "--test_tag_filters=whole_run": (0, ""),
        })
        self.assertIn("--test_tag_filters=-whole_run,kafka", self.bazel_tests()[0])
        self.assertIn("--test_tag_filters=whole_run,kafka", self.bazel_tests()[1])

    def test_a_cluster_is_started_only_if_it_is_asked_for(self):
        said = (
            "satrap: tests that need Kubernetes are skipped; after ./setup kubernetes,"
            " SATRAP_REQUIRE_KUBERNETES=1 runs them"
        )
        self.write_build_of_the_cluster("[ $1 = --folder ] && echo /programs\n")
        with mock.patch.dict(os.environ):
            os.environ.pop("SATRAP_REQUIRE_KUBERNETES", None)
            _, lines = self.run_main("test", "common")
        self.assertIn(said, lines)
        self.assertNotIn("KUBERNETES", " ".join(self.bazel_tests()[0]))
        with mock.patch.dict(os.environ, {"SATRAP_REQUIRE_KUBERNETES": "1"}):
            _, lines = self.run_main("test", "common")
        self.assertNotIn(said, lines)
        options = self.bazel_tests()[-1]
        self.assertIn("--test_env=SATRAP_KUBERNETES=/programs", options)
        self.assertIn("--test_env=SATRAP_REQUIRE_KUBERNETES=1", options)

    def test_without_its_programs_the_tests_of_a_cluster_that_is_asked_for_fail(self):
        with mock.patch.dict(os.environ, {"SATRAP_REQUIRE_KUBERNETES": "1"}):
            self.run_main("test", "common")
        options = self.bazel_tests()[0]
        self.assertIn("--test_env=SATRAP_REQUIRE_KUBERNETES=1", options)
        self.assertNotIn("SATRAP_KUBERNETES", " ".join(options))

    def test_an_option_that_only_tests_have_does_not_fail_the_build(self):
        self.said_of_build = (2, "ERROR: Unrecognized option")
        status, lines = self.run_main("test", "common")
        self.assertEqual((status, lines[-1]), (0, "2 passed, 0 failed"))

    def test_a_source_of_manual_programs_alone_is_run_by_its_own(self):
        self.manual = ["//common:a_test"]
        for sanitizer in ([], ["tsan"]):
            self.run_main("test", *sanitizer, "common/x_test.cc")
            self.assertEqual([call[-1] for call in self.bazel_tests()], ["//common:a_test"])


if __name__ == "__main__":
    unittest.main()
