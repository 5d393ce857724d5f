"""Tests of suites.py."""

import unittest

from suites import filter_of


def chosen(patterns, name):
    """Whether a --gtest_filter chooses a test; * stands for any text."""
    import fnmatch

    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns.split(":"))


class FilterTest(unittest.TestCase):
    def test_takes_plain_parameterised_and_typed_suites(self):
        text = "\n".join([
            "TEST(Plain, Works) {",
            "TEST_F(Fixture,",
            "       LongName) {",
            "TEST_P(Param, Works) {",
            "TYPED_TEST(Typed, Works) {",
            "TYPED_TEST_P(TypedParam, Works) {",
        ])
        made = filter_of(text)
        for name in [
            "Plain.Works",
            "Fixture.LongName",
            "Each/Param.Works/3",
            "Param.Works/Forward",
            "Typed/0.Works",
            "Each/TypedParam/1.Works",
        ]:
            self.assertTrue(chosen(made, name), name)
        for name in ["PlainTest.Works", "Other.Works", "Each/OtherParam.Works/3"]:
            self.assertFalse(chosen(made, name), name)

    def test_chooses_a_suite_of_several_sources_test_by_test(self):
        made = filter_of("TEST_P(Kernel, Adds) {\nTEST(Own, A) {", ["TEST_P(Kernel, Multiplies) {"])
        self.assertTrue(chosen(made, "Each/Kernel.Adds/Forward"))
        self.assertTrue(chosen(made, "Kernel.Adds"))
        self.assertFalse(chosen(made, "Each/Kernel.Multiplies/Forward"))
        self.assertTrue(chosen(made, "Own.A"))

    def test_takes_the_instances_of_a_conformance_suite(self):
        made = filter_of("INSTANTIATE_TEST_SUITE_P(\n    Cpu, Conformance, Values(1));")
        self.assertTrue(chosen(made, "Cpu/Conformance.Adds/0"))
        self.assertFalse(chosen(made, "Device/Conformance.Adds/0"))

    def test_is_empty_without_tests(self):
        self.assertEqual(filter_of("// TEST(A, B)\nint main() {}"), "")


if __name__ == "__main__":
    unittest.main()
