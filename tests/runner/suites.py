"""Which tests of a GoogleTest program are those of one source."""

import re

# A comment or a string could hold these words, but not at the beginning of a line.
_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+),\s*(\w+)", re.MULTILINE)
_INSTANCE = re.compile(
    r"^INSTANTIATE_(?:TYPED_)?TEST_SUITE_P\(\s*(\w*),\s*(\w+)", re.MULTILINE
)


def tests_of(text):
    """The (suite, test) pairs that a source defines."""
    return _TEST.findall(text)


def instances_of(text):
    """The (prefix, suite) pairs that a source instantiates."""
    return _INSTANCE.findall(text)


def filter_of(text, others=()):
    """The --gtest_filter of a source, or "" if it has no tests.

    text: of the source.
    others: texts of the program's other sources. A suite that one of them has, too, is chosen test
      by test, others as a whole.
    """
    shared = {suite for other in others for suite, _ in tests_of(other)}
    patterns = set()
    for suite, test in tests_of(text):
        name = test if suite in shared else "*"
        # As it is, with a prefix, with a number of its type, with both. A parameter follows the name.
        for form in (f"{suite}.{name}", f"*/{suite}.{name}", f"{suite}/*.{name}", f"*/{suite}/*.{name}"):
            patterns.add(form)
            if name != "*":
                patterns.add(form + "/*")
    own = {suite for suite, _ in tests_of(text)}
    for prefix, suite in instances_of(text):
        if suite not in own:
            patterns.add(f"{prefix}/{suite}.*" if prefix else f"{suite}.*")
            patterns.add(f"{prefix}/{suite}/*" if prefix else f"{suite}/*")
    return ":".join(sorted(patterns))
