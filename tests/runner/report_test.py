"""Tests of report.py, with programs that are scripts."""

import os
import tempfile
import unittest
import xml.etree.ElementTree as ET

from report import count_cases, count_target, slowest, targets_of, too_long

SUMMARY = """
//common/rpc:rpc_test                                           PASSED in 5.1s
//common/file:file_test                                (cached) PASSED in 0.1s
//tests/simulation:simulation_test                              PASSED in 9.0s
  Stats over 4 runs: max = 9.0s, min = 6.5s, avg = 7.4s, dev = 1.0s
//common/log:log_test                                           FAILED in 1.5s
  /somewhere/test.log
//common/kafka:kafka_test                              FAILED TO BUILD
//common/role:role_test                                         TIMEOUT in 60.0s
INFO: something else
"""

XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="4" name="AllTests">
  <testsuite name="Suite" tests="4">
    <testcase name="Good" status="run" result="completed" classname="Suite" />
    <testcase name="Bad" status="run" result="completed" classname="Suite">
      <failure message="one"/><failure message="two"/></testcase>
    <testcase name="Skipped" status="run" result="skipped" classname="Suite"><skipped/></testcase>
    <testcase name="DISABLED_Off" status="notrun" result="suppressed" classname="Suite" />
  </testsuite>
</testsuites>
"""

BAZELS_XML = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="a" tests="1" failures="0" errors="1">
  <testcase name="a" status="run" duration="1" time="1"><error message="exited with 134"/></testcase>
</testsuite></testsuites>
"""



class TargetsTest(unittest.TestCase):
    def test_reads_bazels_summary(self):
        targets = {target.label: target for target in targets_of(SUMMARY)}
        self.assertEqual(len(targets), 6)
        self.assertTrue(targets["//common/rpc:rpc_test"].passed)
        self.assertEqual(targets["//common/rpc:rpc_test"].seconds, 5.1)
        self.assertTrue(targets["//common/file:file_test"].cached)
        self.assertTrue(targets["//common/file:file_test"].passed)
        self.assertFalse(targets["//common/log:log_test"].passed)
        self.assertTrue(targets["//common/log:log_test"].ran)
        self.assertFalse(targets["//common/kafka:kafka_test"].ran)
        self.assertTrue(targets["//common/role:role_test"].ran)

    def test_names_the_slowest_that_ran(self):
        lines = slowest(targets_of(SUMMARY), most=2)
        self.assertIn("//common/role:role_test", lines[0])
        self.assertIn("//tests/simulation:simulation_test", lines[1])
        self.assertEqual(len(lines), 2)

    def test_refuses_a_program_that_takes_too_much_of_the_time(self):
        few = targets_of(SUMMARY)
        self.assertEqual(too_long(few, most_share=0.1), [])
        many = "".join(f"//a:t{i}_test PASSED in 1.0s\n" for i in range(90))
        self.assertEqual(too_long(targets_of(many + "//a:long_test PASSED in 9.0s\n"), 0.1), [])
        found = too_long(targets_of(many + "//a:long_test PASSED in 30.0s\n"), 0.1)
        self.assertEqual(len(found), 1)
        self.assertIn("//a:long_test took 30 s", found[0])


class CountTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def target(self, line, xml=None, log="", program=None, shard=""):
        logs = os.path.join(self.folder, "logs/common/a_test", shard)
        os.makedirs(logs, exist_ok=True)
        os.makedirs(os.path.join(self.folder, "bin/common"), exist_ok=True)
        for name, text in (("test.xml", xml), ("test.log", log)):
            if text is not None:
                with open(os.path.join(logs, name), "w", encoding="utf-8") as file:
                    file.write(text)
        if program is not None:
            path = os.path.join(self.folder, "bin/common/a_test")
            # A program that is no script, but has one as its interpreter's input.
            with open(path, "w", encoding="utf-8") as file:
                file.write(program)
            os.chmod(path, 0o755)
        return count_target(
            targets_of("//common:a_test  " + line)[0], self.folder + "/logs", self.folder + "/bin", ""
        )

    def test_counts_cases(self):
        counts = count_cases(ET.fromstring(XML))
        self.assertEqual((counts.passed, counts.failed), (1, 1))

    def test_a_program_with_an_account_is_counted_by_it(self):
        counts = self.target("FAILED in 1.0s", XML)
        self.assertEqual((counts.passed, counts.failed), (1, 1))
        self.assertIn("failed: //common:a_test", counts.messages[0])

    def test_a_script_is_one_case(self):
        self.assertEqual(self.target("PASSED in 1.0s", BAZELS_XML.replace("<error", "<x")).passed, 1)
        counts = self.target("FAILED in 1.0s", BAZELS_XML, program="#!/bin/sh\nexit 1\n")
        self.assertEqual((counts.passed, counts.failed), (0, 1))

    def test_an_account_that_is_no_xml_is_that_of_a_script(self):
        self.assertEqual(self.target("PASSED in 1.0s", "<testsuites><a").passed, 1)

    def test_what_an_earlier_run_without_shards_left_does_not_count(self):
        self.target("PASSED in 1.0s", XML)
        stats = "PASSED in 1.0s\n  Stats over 2 runs: max = 1.0s, min = 1.0s"
        self.target(stats, XML, shard="shard_1_of_2")
        counts = self.target(stats, XML, shard="shard_2_of_2")
        self.assertEqual((counts.passed, counts.failed), (2, 2))
        counts = self.target("PASSED in 1.0s", XML)
        self.assertEqual((counts.passed, counts.failed), (1, 1))

    def test_each_repetition_is_counted(self):
        stats = "PASSED in 1.0s\n  Stats over 2 runs: max = 1.0s, min = 1.0s"
        for shard in ("shard_1_of_2", "shard_2_of_2"):
            self.target(stats, XML, shard=shard)
        for run in ("run_1_of_2", "run_2_of_2"):
            counts = self.target(stats, XML, shard=run)
        self.assertEqual((counts.passed, counts.failed), (2, 2))

    def test_one_that_was_not_built_is_one_failure(self):
        counts = self.target("FAILED TO BUILD", None)
        self.assertEqual((counts.passed, counts.failed), (0, 1))

    def dead(self, line, log, listing, shard=""):
        # An ELF program is not at hand for a test, so the list comes from a program without "#!",
        # which the system's shell runs.
        import report

        real = report.subprocess.run

        def run(command, **arguments):
            self.environment = arguments["env"]
            arguments.pop("env")
            return real(["sh", *command], **arguments)

        report.subprocess.run = run
        try:
            return self.target(line, BAZELS_XML, log, f"cat <<'END'\n{listing}END\n", shard)
        finally:
            report.subprocess.run = real

    def test_what_a_dead_program_did_not_reach_counts_as_failed(self):
        log = "\n".join([
            "[ RUN      ] Suite.First",
            "[       OK ] Suite.First (0 ms)",
            "[ RUN      ] Suite.Skipped",
            "[  SKIPPED ] Suite.Skipped (0 ms)",
            "[ RUN      ] Each/Param.Dies/one",
            "terminate called",
        ])
        listing = (
            "Running main() from gmock_main.cc\nSuite.\n  First\n  Skipped\n  DISABLED_Off\n  Last\n"
            "Each/Param.\n  Dies/one  # GetParam() = 1\n  Dies/two  # GetParam() = 2\n"
        )
        counts = self.dead("FAILED in 1.0s", log, listing)
        self.assertEqual((counts.passed, counts.failed), (1, 3))
        self.assertIn("it died in Each/Param.Dies/one", counts.messages[0])
        self.assertIn("2 cases were not reached", counts.messages[0])

    def test_a_shard_lists_its_own_cases(self):
        log = "[ RUN      ] Suite.A\n[       OK ] Suite.A (0 ms)\n"
        counts = self.dead("TIMEOUT in 60.0s", log, "Suite.\n  A\n  B\n", "shard_2_of_4")
        self.assertEqual((counts.passed, counts.failed), (1, 1))
        self.assertEqual(self.environment["GTEST_SHARD_INDEX"], "1")
        self.assertEqual(self.environment["GTEST_TOTAL_SHARDS"], "4")

    def test_a_program_that_dies_after_its_last_case_fails(self):
        log = "[ RUN      ] Suite.A\n[       OK ] Suite.A (0 ms)\n"
        counts = self.dead("FAILED in 1.0s", log, "Suite.\n  A\n")
        self.assertEqual((counts.passed, counts.failed), (1, 1))


if __name__ == "__main__":
    unittest.main()
