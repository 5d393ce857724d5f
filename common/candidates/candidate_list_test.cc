#include "common/candidates/candidate_list.h"

#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

std::string TestPath(const std::string& name) { return testing::TempDir() + "/" + name; }

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

TEST(CandidateListTest, IsReadAsItWasWritten) {
  const std::string path = TestPath("list.bin");
  ASSERT_TRUE(WriteCandidateList(path, {{7, uint64_t{1} << 63, 9}, {5, 4, 0}}).ok());
  const auto list = ReadCandidateList(path);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->ids, (std::vector<uint64_t>{7, uint64_t{1} << 63, 9}));
  EXPECT_EQ(list->counts, (std::vector<uint64_t>{5, 4, 0}));
  ASSERT_TRUE(WriteCandidateList(path, {}).ok());
  EXPECT_EQ(ReadCandidateList(path)->size(), 0u);
}

TEST(CandidateListTest, IsRefusedWhereAnyByteIsDamagedOrMissing) {
  const std::string path = TestPath("damaged.bin");
  ASSERT_TRUE(WriteCandidateList(path, {{7, 8}, {5, 4}}).ok());
  const std::string bytes = BytesOf(path);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    Write(path, damaged);
    EXPECT_EQ(ReadCandidateList(path).status().code(), absl::StatusCode::kDataLoss) << i;
    Write(path, bytes.substr(0, i));
    EXPECT_EQ(ReadCandidateList(path).status().code(), absl::StatusCode::kDataLoss) << i;
  }
  EXPECT_EQ(ReadCandidateList(TestPath("none.bin")).status().code(), absl::StatusCode::kNotFound);
}

TEST(CandidateListTest, SortsByFallingCountAndKeepsTheOrderOfEquals) {
  CandidateList list = {{1, 2, 3, 4}, {5, 9, 5, 9}};
  list.Sort();
  EXPECT_EQ(list.ids, (std::vector<uint64_t>{2, 4, 1, 3}));
  EXPECT_EQ(list.counts, (std::vector<uint64_t>{9, 9, 5, 5}));
}

}  // namespace
}  // namespace satrap
