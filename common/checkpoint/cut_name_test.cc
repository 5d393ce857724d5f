#include "common/checkpoint/cut_name.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(CutName, IsReadBackWhateverTheNumbers) {
  for (const uint64_t generation :
       {uint64_t{1}, uint64_t{9999}, uint64_t{10000}, std::numeric_limits<uint64_t>::max()}) {
    for (const uint64_t number : {uint64_t{1}, uint64_t{999999}, uint64_t{1000000}}) {
      const auto id = ParseCutName(CutName(generation, number));
      ASSERT_TRUE(id.has_value()) << CutName(generation, number);
      EXPECT_EQ(id->generation, generation);
      EXPECT_EQ(id->number, number);
    }
  }
  EXPECT_EQ(CutName(3, 12), "cut_0003_000012");
}

TEST(CutName, NoOtherNameIsOne) {
  for (const char* name :
       {"", "cut", "cut_0003", "cut_0003_000012_1", "cut_3_12", "cut_0003_12", "cut_00003_000012",
        "cut_0003_+00012", "cut_0003_-00012", "cut_0003_ 00012", "cut_0003_00001x",
        "Cut_0003_000012", "cut_0003_000012.tmp", "cut_0003_000012/", "cut_0003_000012 ",
        "out_0003_000012", "cut_18446744073709551616_000001"}) {
    EXPECT_FALSE(ParseCutName(name).has_value()) << name;
  }
}

// Cuts are not ordered as their names are: cut_10000_000001 comes after cut_9999_000002.
TEST(CutName, CutsAreOrderedAsTheyAreCommitted) {
  const std::vector<std::string> names = {"cut_0001_000001", "cut_0001_000002", "cut_0001_1000000",
                                          "cut_0002_000001", "cut_9999_000002", "cut_10000_000001"};
  for (size_t i = 1; i < names.size(); ++i) {
    EXPECT_LT(*ParseCutName(names[i - 1]), *ParseCutName(names[i])) << names[i];
  }
  EXPECT_EQ(*ParseCutName(names[0]), (CutId{1, 1}));
}

TEST(CutName, CutsLieInTheRunsFolderAndTheBeginningNowhere) {
  EXPECT_EQ(CheckpointsDir("/runs/a"), "/runs/a/checkpoints");
  EXPECT_EQ(FolderOfCut("/runs/a", "cut_0001_000002"), "/runs/a/checkpoints/cut_0001_000002");
  EXPECT_EQ(FolderOfCut("/runs/a", ""), "");
}

}  // namespace
}  // namespace satrap
