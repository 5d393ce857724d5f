"""Sources that are compiled together, so that the headers they share are read once."""

def _unit_impl(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".cc")
    ctx.actions.run(
        mnemonic = "JoinSources",
        executable = ctx.executable._join,
        inputs = ctx.files.srcs,
        outputs = [out],
        arguments = [out.path] + [source.path for source in ctx.files.srcs],
    )
    return DefaultInfo(files = depset([out]))

_unit = rule(
    implementation = _unit_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "_join": attr.label(
            default = "//bazel:join_sources.sh",
            allow_single_file = True,
            executable = True,
            cfg = "host",
        ),
    },
)

# More do not save much, and a change of one source compiles all of its unit.
_MOST = 10

def units(name, sources, ending = ""):
    """The labels of the files to compile in place of `sources`, which are .cc files of this package.

    Args:
      name: of the target that compiles them.
      sources: as they are.
      ending: that of each file's name before .cc, for .bazelrc's flags of files.
    """
    count = (len(sources) + _MOST - 1) // _MOST
    files = []
    for number in range(count):
        unit = "%s_unit%d%s" % (name, number + 1, ending)
        joined = sources[number * len(sources) // count:(number + 1) * len(sources) // count]
        if len(joined) == 1:
            files += joined
            continue
        _unit(name = unit, srcs = joined, visibility = ["//visibility:private"])
        files.append(":" + unit)
    return files
