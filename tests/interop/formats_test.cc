// Compares keys, partitions and shuffles with those of reference_formats.py, which computes them
// from the text of docs/formats.md in another language. /usr/bin/python3 comes with Debian's
// bazel-bootstrap.

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>

#include "common/numeric/hash.h"
#include "data_loader/batch/block.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kCommand[] = "/usr/bin/python3 tests/interop/reference_formats.py";

// The line that the script prints for "key ID ID_SPACE", computed by the engines' functions.
std::string KeyLine(const std::string& question) {
  std::istringstream in(question);
  std::string word, space;
  uint64_t id = 0;
  in >> word >> id >> std::ws;
  std::getline(in, space);
  const uint64_t key = KeyOf(id, Xxh64(space));
  std::ostringstream line;
  line << question << ": " << key << " partition " << PartitionOf(key)
       << " of 3 PSs: " << PsOfPartition(PartitionOf(key), 3);
  return line.str();
}

// Like KeyLine, for "shuffle SEED EPOCH SPLIT BLOCK ROWS".
std::string ShuffleLine(const std::string& question) {
  std::istringstream in(question);
  std::string word;
  uint64_t seed = 0;
  uint32_t epoch = 0;
  int rows = 0;
  Block block{RecordSchema()};
  in >> word >> seed >> epoch >> block.split >> block.index >> rows;
  for (int row = 0; row < rows; ++row) {
    block.records.BeginRow();
    block.records.CommitRow();
  }
  ShuffleBlock(seed, epoch, &block);
  std::ostringstream line;
  line << question << ":";
  for (const uint32_t row : block.order) line << " " << row;
  return line.str();
}

TEST(FormatsTest, KeysAndShufflesAreThoseOfTheReferenceProgram) {
  std::FILE* reference = popen(kCommand, "r");
  ASSERT_NE(reference, nullptr);
  int keys = 0, shuffles = 0;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), reference) != nullptr) {
    std::string line = buffer;
    ASSERT_EQ(line.back(), '\n');
    line.pop_back();
    const std::string question = line.substr(0, line.find(':'));
    const bool is_key = question.rfind("key ", 0) == 0;
    EXPECT_EQ(is_key ? KeyLine(question) : ShuffleLine(question), line);
    ++(is_key ? keys : shuffles);
  }
  EXPECT_EQ(pclose(reference), 0) << kCommand << " failed";
  EXPECT_EQ(keys, 21);
  EXPECT_EQ(shuffles, 9);
}

}  // namespace
}  // namespace satrap
