"""Stand-in for @rules_cc: forwards every rule to Bazel's own.

Debian's rules_cc 0.0.4 needs a newer Bazel than Debian's 4.2.3, whose own BUILD files load
this file.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_import = native.objc_import
objc_library = native.objc_library

def cc_flags_supplier(**kwargs):
    native.cc_library(**{k: v for k, v in kwargs.items() if k in ["name", "visibility"]})

def compiler_flag(**kwargs):
    native.cc_library(**{k: v for k, v in kwargs.items() if k in ["name", "visibility"]})
