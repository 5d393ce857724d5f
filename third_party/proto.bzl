"""C++ libraries of .proto files, made by Debian's protoc."""

_IMPORT_DIR = "/usr/include"

# Generated code is not ours to keep free of warnings.
_GENERATED_COPTS = ["-w"]

def _generate(name, srcs, deps, suffix, options):
    outs = [src[:-len(".proto")] + end for src in srcs for end in [suffix + ".h", suffix + ".cc"]]
    native.genrule(
        name = name,
        srcs = srcs + [dep + "_srcs" for dep in deps],
        outs = outs,
        cmd = "protoc -I . -I %s %s %s" % (
            _IMPORT_DIR,
            options,
            " ".join(["$(locations %s)" % src for src in srcs]),
        ),
        message = "Generating C++ of",
        visibility = ["//visibility:private"],
    )
    return outs

def _library(name, outs, deps, visibility, testonly):
    native.cc_library(
        name = name,
        srcs = [out for out in outs if out.endswith(".cc")],
        hdrs = [out for out in outs if out.endswith(".h")],
        copts = _GENERATED_COPTS,
        deps = deps,
        visibility = visibility,
        testonly = testonly,
    )

def _absolute(label):
    """`//pkg` and `:name` as `//pkg:name`, so that a suffix can be appended."""
    if label.startswith("//") and ":" not in label:
        return label + ":" + label.split("/")[-1]
    return label

def satrap_proto_library(name, srcs, deps = [], visibility = None, testonly = False):
    """A cc_library with the messages of `srcs`.

    Include them as "package/file.pb.h", and import them as "package/file.proto".

    Args:
      name: of the cc_library. `NAME_srcs` is the filegroup that importers need.
      srcs: .proto files of this package.
      deps: satrap_proto_library targets whose files these import.
      visibility: as everywhere.
      testonly: as everywhere.
    """
    deps = [_absolute(dep) for dep in deps]
    native.filegroup(
        name = name + "_srcs",
        srcs = srcs + [dep + "_srcs" for dep in deps],
        visibility = visibility,
        testonly = testonly,
    )
    outs = _generate(name + "_gen", srcs, deps, ".pb", "--cpp_out=$(GENDIR)")
    _library(name, outs, deps + ["//third_party:protobuf"], visibility, testonly)

def satrap_grpc_library(name, srcs, deps, visibility = None, testonly = False):
    """A cc_library with the services of `srcs`, included as "package/file.grpc.pb.h".

    Args:
      name: of the cc_library.
      srcs: .proto files of this package that declare services.
      deps: the satrap_proto_library of `srcs`, and those that it imports.
      visibility: as everywhere.
      testonly: as everywhere.
    """
    deps = [_absolute(dep) for dep in deps]
    outs = _generate(
        name + "_gen",
        srcs,
        deps,
        ".grpc.pb",
        "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin --grpc_out=$(GENDIR)",
    )
    _library(name, outs, deps + ["//third_party:grpc"], visibility, testonly)
