"""Objects compiled by nvcc, and the toolkit that they come from.

The toolkit is a folder outside of the build, named by the flag //third_party/cuda:toolkit. ./setup cuda
sets it. Its path is part of each action's command line, so another toolkit compiles everything again;
the contents of one folder are taken as fixed.
"""

# Machine code for the cards of data centres since 2020, and PTX from which the driver of a later card
# makes its own.
_TARGETS = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
]

ToolkitInfo = provider(fields = ["path"])

def _toolkit_impl(ctx):
    return ToolkitInfo(path = ctx.build_setting_value)

cuda_toolkit = rule(
    implementation = _toolkit_impl,
    build_setting = config.string(flag = True),
    doc = "The folder of a CUDA toolkit, or the empty string.",
)

_TOOLKIT = attr.label(default = "//third_party/cuda:toolkit", providers = [ToolkitInfo])

def _without_toolkit(ctx, outputs):
    """An action that fails. Not the analysis: patterns such as //... include these targets."""
    ctx.actions.run_shell(
        outputs = outputs,
        command = "echo '%s needs a CUDA toolkit: run ./setup cuda first' >&2; exit 1" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs))]

def _cuda_objects_impl(ctx):
    toolkit = ctx.attr._toolkit[ToolkitInfo].path
    sources = ctx.files.srcs
    objects = [
        ctx.actions.declare_file("%s/%s.o" % (ctx.label.name, source.basename[:-len(".cc")]))
        for source in sources
    ]
    if not toolkit:
        return _without_toolkit(ctx, objects)
    headers = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps]

    # Kernels may call constexpr functions, which the host's compiler takes for granted. Subnormal
    # numbers count as 0 (docs/gpu.md).
    language = ["-x=c++"]
    if ctx.attr.kernels:
        language = ["-x=cu", "-lineinfo", "--expt-relaxed-constexpr", "-ftz=true"] + _TARGETS
    for source, object in zip(sources, objects):
        ctx.actions.run(
            executable = toolkit + "/bin/nvcc",
            arguments = language + [
                "-std=c++20",
                "-O3",
                # As Bazel compiles, so that the objects fit into any link.
                "-Xcompiler=-fPIC,-Wall,-Werror",
                "-Werror=all-warnings",
                "-I.",
                "-I" + ctx.bin_dir.path,
                # Where the wheels have NCCL.
                "-I" + toolkit + "/../nccl/include",
                # kernel.h includes the dialect by its name alone.
                "-Inn_worker/device/cuda",
                "-c",
                source.path,
                "-o",
                object.path,
            ],
            inputs = depset([source], transitive = headers),
            outputs = [object],
            mnemonic = "CudaCompile",
            progress_message = "Compiling %s with nvcc" % source.short_path,
            use_default_shell_env = True,
        )
    return [DefaultInfo(files = depset(objects))]

cuda_objects = rule(
    implementation = _cuda_objects_impl,
    doc = """Objects for the srcs of a cc_library.

    Name them in a select() of //third_party/cuda:no_toolkit, or in targets that are tagged manual.""",
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"]),
        "deps": attr.label_list(providers = [CcInfo], doc = "for their headers"),
        "kernels": attr.bool(
            default = True,
            doc = "whether the sources contain kernels, or only call the toolkit's libraries",
        ),
        "_toolkit": _TOOLKIT,
    },
)

def _cuda_library_impl(ctx):
    toolkit = ctx.attr._toolkit[ToolkitInfo].path
    library = ctx.actions.declare_file(ctx.attr.file)
    if not toolkit:
        return _without_toolkit(ctx, [library])

    # Installed toolkits have lib64, wheels have lib.
    ctx.actions.run_shell(
        outputs = [library],
        command = 'cp "$1/lib64/$2" "$3" 2>/dev/null || cp "$1/lib/$2" "$3"',
        arguments = [toolkit, ctx.attr.file, library.path],
    )
    return [DefaultInfo(files = depset([library]))]

cuda_library = rule(
    implementation = _cuda_library_impl,
    doc = "A static library of the toolkit, for the srcs of a cc_library.",
    attrs = {
        "file": attr.string(mandatory = True),
        "_toolkit": _TOOLKIT,
    },
)
