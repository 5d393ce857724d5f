"""Libraries, programs and tests from lists of sources. A new source is one line in one list.

A source is named without its ending: "clock" is clock.h and clock.cc, as far as they exist, for a
library, and clock_test.cc for a test.

Who may depend on a library follows from its folder, by the layers of the project
(tests/style/check.sh): everybody on common and proto, a role's own folders, deploy and tests on a
role's. All depend on Abseil and on common/base, and those outside of common on
common/numeric and common/thread, without naming them.
"""

# g++ 12 warns falsely of overflows in std::string's inlined copies. It does not warn in system headers, but
# a precompiled header loses that mark. `./satrap includes` compiles with these warnings.
_FALSE_WARNINGS = [
    "-Wno-array-bounds",
    "-Wno-restrict",
    "-Wno-stringop-overflow",
    "-Wno-stringop-overread",
]

# The headers that most sources include are read in a precompiled form (precompiled.bzl), but not by
# clang and not without optimisation, which do not take it. Programs that are tagged manual read them
# as text, too: CI does not build them, so nothing would tell that their flags no longer suit the
# precompiled header. Libraries keep it: what only such programs use has the flags of the others.
def _precompiled(name, tags = []):
    if "manual" in tags:
        return struct(copts = [], deps = [])
    return struct(
        copts = select({
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

def _visibility():
    top = native.package_name().split("/")[0]
    if top in ("common", "proto"):
        return ["//:__subpackages__"]
    users = [top] + [folder for folder in ("deploy", "tests") if folder != top]
    return ["//%s:__subpackages__" % folder for folder in users]

def _deps(deps):
    """The deps, and what all have."""
    package = native.package_name()
    everywhere = ["//third_party:absl"]
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
        **kwargs):
    """A cc_library.

    Args:
      name: that of the folder, for most of its sources; another for those that link what the others
        do without (gRPC, Gloo, oneDNN, librdkafka), and "testing" for what tests use.
      sources: as above.
      headers: those whose .cc another target has.
      deps: as in cc_library.
      copts: of all sources.
      testonly: whether only tests may depend on it; if not given, its name tells: "testing", "x_testing".
      precompiled: False for code that other compilers read, too.
      **kwargs: for cc_library.
    """
    if testonly == None:
        testonly = name == "testing" or name.endswith("_testing")
    common = _precompiled("testing_headers" if testonly else "library_headers")
    files = _files(sources, [".h", ".cc"]) + _files(headers, [".h"])
    native.cc_library(
        name = name,
        srcs = [file for file in files if file.endswith(".cc")],
        hdrs = [file for file in files if file.endswith(".h")],
        copts = copts + (common.copts if precompiled else []),
        testonly = testonly,
        visibility = _visibility(),
        deps = _deps(deps) + (common.deps if precompiled else []),
        **kwargs
    )

def satrap_binary(name, sources = [], deps = [], visibility = None, tags = [], **kwargs):
    """A cc_binary, of which each source is a .cc without a header.

    Args:
      name: as everywhere.
      sources: as above.
      deps: as everywhere.
      visibility: its folder's, if not given.
      tags: as in cc_binary.
      **kwargs: for cc_binary.
    """
    common = _precompiled("library_headers", tags)
    native.cc_binary(
        name = name,
        srcs = _files(sources, [".cc"]),
        copts = common.copts,
        tags = tags,
        visibility = visibility or _visibility(),
        deps = _deps(deps) + common.deps,
        **kwargs
    )

def satrap_test(name, sources, deps = [], own_main = False, tags = [], **kwargs):
    """One program of the tests of several sources; `./satrap test FILE` runs those of one source.

    All its sources end in _test.cc: .bazelrc compiles those with -O1, as their precompiled header, and g++
    crashes on a header of another optimisation.

    A test has what the libraries that it names depend on, too, so it names nothing of that.

    Sources with other tags, other data, or what concerns the whole process (limits, signals, the
    working folder, a main function of their own) are programs of their own.

    Args:
      name: as everywhere.
      sources: as above.
      deps: as everywhere.
      own_main: whether a source has a main function.
      tags: as in cc_test.
      **kwargs: for cc_test.
    """
    common = _precompiled("test_headers", tags)
    native.cc_test(
        name = name,
        srcs = _files(sources, ["_test.cc"]),
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
