// What most sources of tests include, for precompiled.bzl; see common_includes.h.

#ifndef SATRAP_BAZEL_TEST_INCLUDES_H_
#define SATRAP_BAZEL_TEST_INCLUDES_H_

#include "bazel/common_includes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#endif  // SATRAP_BAZEL_TEST_INCLUDES_H_
