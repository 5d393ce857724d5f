"""Tests of tidy.py, with a stand-in for clang-tidy, and with g++ itself."""

import contextlib
import io
import os
import tempfile
import unittest
from unittest import mock

import tidy


class UnitsTest(unittest.TestCase):
    def test_a_unit_has_sources_of_one_folder_and_tests_apart(self):
        files = ["a/x.cc", "b/x.cc", "a/y.cc", "a/x_test.cc"] + [f"c/{i}.cc" for i in range(9)]
        units = tidy.units_of(files, most=8)
        self.assertIn(["a/x.cc", "a/y.cc"], units)
        self.assertIn(["a/x_test.cc"], units)
        self.assertIn(["b/x.cc"], units)
        self.assertEqual(sorted(len(unit) for unit in units if unit[0].startswith("c/")), [1, 8])
        self.assertEqual(sorted(file for unit in units for file in unit), sorted(files))


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.calls = []
        os.makedirs(self.root + "/a")
        for name in ("x", "y"):
            with open(f"{self.root}/a/{name}.cc", "w", encoding="utf-8") as file:
                file.write(f"int {name};\n")

    def check(self, unit, answers):
        """Runs clang-tidy's stand-in, which answers with answers[i] to the i-th call."""

        def run(command, **_):
            source = command[command.index("--") - 1]
            with open(source, encoding="utf-8") if os.path.isabs(source) else open(os.devnull) as file:
                self.calls.append((source, file.read()))
            said = answers[len(self.calls) - 1]
            return mock.Mock(stdout=said, returncode=1 if said else 0)

        with mock.patch.object(tidy.subprocess, "run", run):
            return tidy.Tidy(self.root, self.root, []).check(unit)

    def test_reads_several_sources_at_once(self):
        said, paths = self.check(["a/x.cc", "a/y.cc"], [""])
        self.assertEqual((said, paths), ("", set()))
        self.assertEqual(self.calls[0][1], "int x;\n\nint y;\n\n")

    def test_names_the_source_of_a_finding(self):
        # The unit's third line is the first of its second source.
        finding = f"{self.root}/tidy/a_x_cc.cc:3:4: error: by zero [clang-analyzer-core.DivideZero]\n"
        said, paths = self.check(["a/x.cc", "a/y.cc"], [finding])
        self.assertEqual(paths, {"a/y.cc"})
        self.assertIn("a/y.cc:1:4: error: by zero", said)
        self.assertEqual(len(self.calls), 1)

    def test_reads_each_by_itself_where_they_do_not_compile_together(self):
        error = f"{self.root}/tidy/a_x_cc.cc:3:4: error: redefinition of 'kBlock' [clang-diagnostic-error]\n"
        finding = "a/y.cc:9:1: error: bad [bugprone-bad,-warnings-as-errors]\n"
        _, paths = self.check(["a/x.cc", "a/y.cc"], [error, "", finding])
        self.assertEqual([call[0] for call in self.calls[1:]], ["a/x.cc", "a/y.cc"])
        self.assertEqual(paths, {"a/y.cc"})

    def test_a_clang_tidy_that_fails_without_a_word_is_a_finding(self):
        def run(_, **__):
            return mock.Mock(stdout="", returncode=1)

        with mock.patch.object(tidy.subprocess, "run", run):
            _, paths = tidy.Tidy(self.root, self.root, []).check(["a/x.cc"])
        self.assertEqual(paths, {"a/x.cc"})


class AloneTest(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.makedirs(self.root + "/a")
        self.write("suffices", "#include <cstdint>\nstd::int64_t suffices;\n")
        self.write("lacks", "std::int64_t lacks;\n")

    def write(self, name, text):
        with open(f"{self.root}/a/{name}.cc", "w", encoding="utf-8") as file:
            file.write(text)

    def run_alone(self, *files):
        """(exit status, lines printed, counts) of tidy.py --alone."""
        counts = self.root + "/counts"
        out = io.StringIO()
        refused = mock.Mock(side_effect=AssertionError("--alone reads nothing with clang-tidy"))
        with mock.patch.object(tidy.Tidy, "check", refused), contextlib.redirect_stdout(out):
            status = tidy.main([self.root, self.root, counts, "--alone", *files])
        with open(counts, encoding="utf-8") as file:
            return status, out.getvalue().splitlines(), file.read()

    def test_a_source_whose_includes_suffice_passes(self):
        status, lines, counts = self.run_alone("a/suffices.cc")
        self.assertEqual((status, counts), (0, "1 0\n"))
        self.assertEqual(lines, ["tidy: 1 files, 0 with findings"])

    def test_a_missing_include_is_found_and_named(self):
        status, lines, counts = self.run_alone("a/suffices.cc", "a/lacks.cc")
        self.assertEqual((status, counts), (1, "1 1\n"))
        self.assertIn("a/lacks.cc does not compile by its own includes:", lines)
        # The quotes of g++'s message depend on the locale.
        self.assertTrue(any(line.startswith("a/lacks.cc:1:6: error:") for line in lines), lines)
        self.assertEqual(lines[-2:], ["tidy: a/lacks.cc has findings", "tidy: 2 files, 1 with findings"])

    def test_what_gxx_warns_of_in_optimised_code_is_an_error(self):
        self.write("warns", "int warns(int i) {\n  int a[2] = {1, 2};\n  return i == 0 ? a[2] : 0;\n}\n")
        status, lines, _ = self.run_alone("a/warns.cc")
        self.assertEqual(status, 1)
        self.assertTrue(any("[-Werror=array-bounds]" in line for line in lines), lines)

    def test_a_source_is_compiled_alone_besides_what_clang_tidy_reads(self):
        counts = self.root + "/counts"
        finds_nothing = mock.Mock(return_value=("", set()))
        out = io.StringIO()
        with mock.patch.object(tidy.Tidy, "check", finds_nothing), contextlib.redirect_stdout(out):
            status = tidy.main([self.root, self.root, counts, "a/suffices.cc", "a/lacks.cc"])
        self.assertEqual(status, 1)
        self.assertEqual(finds_nothing.call_count, 1)
        self.assertIn("tidy: a/lacks.cc has findings", out.getvalue().splitlines())


if __name__ == "__main__":
    unittest.main()
