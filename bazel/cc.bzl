"""Libraries, programs and tests from lists of sources. A new source is one line in one list.

The sources of a list are compiled together, at most ten at a time (unit.bzl).

A source is named without its ending: "clock" is clock.h and clock.cc, as far as they exist, for a
library, and clock_test.cc for a test.

Who may depend on a library follows from its folder, by the layers of the project
(tests/style/check.sh): everybody on common and proto, a role's own folders, deploy and tests on a
role's. All depend on Abseil, on common/base and on the messages that most sources use
(//proto:messages), those outside of common also on common/numeric and common/thread, and what only
tests use on GoogleTest, without naming them.
"""

load(":unit.bzl", "units")

# g++ 12 warns falsely of overflows in std::string's inlined copies. It does not warn in system headers, but
# a precompiled header loses that mark. `./satrap includes` compiles with these warnings.
_FALSE_WARNINGS = [
    "-Wno-array-bounds",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
]

# In a unit (unit.bzl), g++ takes the sources for headers, and warns of classes there that have members of a
# type in an unnamed namespace.
_UNIT_COPTS = select({
    "//bazel:clang": [],
    "//conditions:default": ["-Wno-subobject-linkage"],
})

# The headers that most sources include are read in a precompiled form (precompiled.bzl), but not by
# clang and not without optimisation, which do not take it. Programs that are tagged manual read them
# as text, too: CI does not build them, so nothing would tell that their flags no longer suit the
# precompiled header. Libraries keep it: what only such programs use has the flags of the others.
def _precompiled(name, tags = []):
    if "manual" in tags:
        return struct(copts = _UNIT_COPTS, deps = [])
    return struct(
        copts = _UNIT_COPTS + select({
            "//bazel:headers_as_text": [],
            "//conditions:default": [
                "-include",
                "bazel/%s.h" % name,
                "-Winvalid-pch",
            ] + _FALSE_WARNINGS,
        }),
        deps = select({
            "//bazel:headers_as_text": [],
            "//conditions:default": ["//bazel:" + name],
        }),
    )

def _files(sources, endings):
    """The files of this package that the names stand for. A name without any is an error."""
    files = []
    for source in sources:
        found = native.glob([source + ending for ending in endings])
        if not found:
            fail("%s has no %s" % (native.package_name(), " or ".join([source + e for e in endings])))
        files += found
    return files

def _compiled(name, sources, alone, together = True, ending = ""):
    """The files to compile: units of the sources (unit.bzl), and those that stay alone."""
    if not together:
        return sources
    apart = _files(alone, [ending + ".cc"])
    for file in apart:
        if file not in sources:
            fail("%s/%s is alone, but in no list of sources" % (native.package_name(), file))
    return units(name, [source for source in sources if source not in apart], ending) + apart

def _visibility():
    top = native.package_name().split("/")[0]
    if top in ("common", "proto"):
        return ["//:__subpackages__"]
    users = [top] + [folder for folder in ("deploy", "tests") if folder != top]
    return ["//%s:__subpackages__" % folder for folder in users]

def _is_test_folder():
    return native.package_name().split("/")[0] == "tests"

def _deps(deps):
    """The deps, and what all have."""
    package = native.package_name()
    everywhere = ["//third_party:absl", "//proto:messages"]
    if package != "common/base":
        everywhere.append("//common/base")
    if package.split("/")[0] not in ("common", "proto"):
        everywhere += ["//common/numeric", "//common/thread"]
    if type(deps) == "list":
        deps = [dep for dep in deps if dep not in everywhere]
    return everywhere + deps

def satrap_library(
        name,
        sources = [],
        headers = [],
        deps = [],
        copts = [],
        testonly = None,
        precompiled = True,
        alone = [],
        **kwargs):
    """A cc_library.

    Args:
      name: that of the folder, for most of its sources; another for those that link what the others
        do without (gRPC, Gloo, oneDNN, librdkafka), and "testing" for what tests use.
      sources: as above.
      headers: those whose .cc another target has.
      deps: as in cc_library.
      copts: of all sources.
      testonly: whether only tests may depend on it; if not given, its name tells ("testing",
        "x_testing"), or its folder (tests).
      precompiled: False for code that other compilers read, too.
      alone: those of the sources that cannot be compiled together with others.
      **kwargs: for cc_library.
    """
    if testonly == None:
        testonly = name == "testing" or name.endswith("_testing") or _is_test_folder()
    if testonly:
        deps = deps + ["//third_party:gtest"]
    common = _precompiled("testing_headers" if testonly else "library_headers")
    files = _files(sources, [".h", ".cc"]) + _files(headers, [".h"])
    native.cc_library(
        name = name,
        srcs = _compiled(name, [file for file in files if file.endswith(".cc")], alone, precompiled),
        hdrs = [file for file in files if file.endswith(".h")],
        copts = copts + (common.copts if precompiled else []),
        testonly = testonly,
        visibility = _visibility(),
        deps = _deps(deps) + (common.deps if precompiled else []),
        **kwargs
    )

def satrap_binary(
        name,
        sources = [],
        deps = [],
        visibility = None,
        tags = [],
        testonly = False,
        **kwargs):
    """A cc_binary, of which each source is a .cc without a header.

    Args:
      name: as everywhere.
      sources: as above.
      deps: as everywhere.
      visibility: its folder's, if not given.
      tags: as in cc_binary.
      testonly: as in cc_binary; all of the folder tests are.
      **kwargs: for cc_binary.
    """
    common = _precompiled("library_headers", tags)
    native.cc_binary(
        name = name,
        srcs = _files(sources, [".cc"]),
        copts = common.copts,
        tags = tags,
        testonly = testonly or _is_test_folder(),
        visibility = visibility or _visibility(),
        deps = _deps(deps) + common.deps,
        **kwargs
    )

def _own_libraries():
    """The libraries above in this package that are named like the folder, or "testing"."""
    folder = native.package_name().split("/")[-1]
    rules = {name: native.existing_rule(name) for name in (folder, "testing")}
    return [":" + name for name, rule in rules.items() if rule and rule["kind"] == "cc_library"]

def satrap_test(
        name,
        sources,
        deps = [],
        own_main = False,
        tags = [],
        alone = [],
        own_libraries = True,
        **kwargs):
    """One program of the tests of several sources; `./satrap test FILE` runs those of one source.

    All its sources end in _test.cc: .bazelrc compiles those with -O1, as their precompiled header, and g++
    crashes on a header of another optimisation.

    It depends on its folder's library and on "testing" there, which stand above it in the BUILD file. A
    test has what the libraries that it names depend on, too, so it names nothing of that.

    Sources with other tags, other data, or what concerns the whole process (limits, signals, the
    working folder, a main function of their own) are programs of their own.

    Args:
      name: as everywhere.
      sources: as above.
      deps: as everywhere.
      own_main: whether a source has a main function.
      tags: as in cc_test.
      alone: as everywhere.
      own_libraries: False for a test that does without what the folder's libraries link.
      **kwargs: for cc_test.
    """
    common = _precompiled("test_headers", tags)
    if own_libraries:
        deps = deps + [own for own in _own_libraries() if own not in deps]
    native.cc_test(
        name = name,
        srcs = _compiled(name, _files(sources, ["_test.cc"]), alone, ending = "_test"),
        copts = common.copts,
        tags = tags,
        visibility = _visibility(),
        deps = _deps(deps) + [
            "//third_party:gtest_no_main" if own_main else "//third_party:gtest",
        ] + common.deps,
        **kwargs
    )

def satrap_whole_run_test(name, sources, tags = [], **kwargs):
    """A satrap_test that starts all roles of a run. Two such tests run at a time, after all others.

    It may take a quarter of an hour, many times what it takes on a machine that does nothing else.

    Args:
      name: as everywhere.
      sources: as above.
      tags: "exclusive" for a test that runs alone, because its assertions bound a time.
      **kwargs: for satrap_test.
    """
    satrap_test(
        name = name,
        size = "large",
        sources = sources,
        # Sanitizers would take hours.
        tags = ["no_sanitizer", "whole_run"] + tags,
        **kwargs
    )
