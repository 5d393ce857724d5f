#include "common/base/cpu_name.h"

#include <gtest/gtest.h>

namespace satrap {
namespace {

TEST(CpuNameTest, NamesTheModelAndItsVersion) {
  EXPECT_EQ(CpuNameOf("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n"
                      "model name\t: AMD EPYC\nstepping\t: 1\n\n"
                      "processor\t: 1\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n"
                      "model name\t: AMD EPYC\nstepping\t: 1\nflags\t\t: fpu vme: de\n\n"),
            "AMD EPYC (family 26, model 2, stepping 1), 2 CPUs");
}

TEST(CpuNameTest, CanBePrintedIntoJson) {
  EXPECT_EQ(CpuNameOf("processor : 0\nmodel name : A \"fast\\slow\" one\n"),
            "A 'fast/slow' one, 1 CPU");
}

TEST(CpuNameTest, IsUnknownWhereTheSystemDoesNotSay) {
  EXPECT_EQ(CpuNameOf(""), "unknown");
  EXPECT_FALSE(CpuName().empty());
}

}  // namespace
}  // namespace satrap
