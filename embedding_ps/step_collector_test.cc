#include "embedding_ps/step_collector.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TableOwnership OneTable() {
  TableOwnership ownership;
  ownership.tables = {{0, 2}};
  return ownership;
}

// A part of rank `rank` with one table of two values per row. The part owns its arrays.
StepCollector::Part Part(uint32_t rank, const std::vector<uint64_t>& keys,
                         const std::vector<float>& gradients,
                         const std::vector<uint32_t>& counts = {}) {
  StepCollector::Part part;
  part.call.sender = rank;
  const size_t key_bytes = keys.size() * sizeof(uint64_t);
  const size_t gradient_bytes = gradients.size() * sizeof(float);
  Buffer payload(key_bytes + gradient_bytes + counts.size() * sizeof(uint32_t));
  auto* const to = payload.mutable_data();
  std::copy(keys.begin(), keys.end(), reinterpret_cast<uint64_t*>(to));
  std::copy(gradients.begin(), gradients.end(), reinterpret_cast<float*>(to + key_bytes));
  std::copy(counts.begin(), counts.end(),
            reinterpret_cast<uint32_t*>(to + key_bytes + gradient_bytes));
  TableGradient table;
  table.keys = payload.View<uint64_t>(0, keys.size());
  table.gradients = payload.View<float>(key_bytes, gradients.size());
  table.sample_counts = payload.View<uint32_t>(key_bytes + gradient_bytes, counts.size());
  part.update.payload = payload;
  part.update.tables.push_back(table);
  return part;
}

StepHeader Header(uint64_t step, float weight = 8) {
  StepHeader header;
  header.set_step(step);
  header.set_normalizer(weight);
  return header;
}

TEST(StepCollectorTest, GivesTheStepInPartOrderWhenTheLastPartHasArrived) {
  StepCollector collector(3);
  for (const uint32_t part : {2, 0}) {
    ASSERT_TRUE(collector.Add(Header(0), part, Part(part, {}, {})).ok());
    EXPECT_FALSE(collector.TakeIfComplete().has_value());
  }
  EXPECT_EQ(collector.num_parts(), 2);
  ASSERT_TRUE(collector.Add(Header(0), 1, Part(1, {}, {})).ok());
  const auto complete = collector.TakeIfComplete();
  ASSERT_TRUE(complete.has_value());
  for (uint32_t part = 0; part < 3; ++part) EXPECT_EQ(complete->parts[part].call.sender, part);
  EXPECT_EQ(collector.step(), 1u);
  EXPECT_EQ(collector.num_parts(), 0);
}

TEST(StepCollectorTest, RefusesAnotherStep) {
  StepCollector collector(1);
  EXPECT_FALSE(collector.Add(Header(1), 0, Part(0, {}, {})).ok());
  ASSERT_TRUE(collector.Add(Header(0), 0, Part(0, {}, {})).ok());
  ASSERT_TRUE(collector.TakeIfComplete().has_value());
  EXPECT_FALSE(collector.Add(Header(0), 0, Part(0, {}, {})).ok());
  EXPECT_TRUE(collector.Add(Header(1), 0, Part(0, {}, {})).ok());
}

TEST(StepCollectorTest, RefusesAPartTwiceAndOneThatDoesNotExist) {
  StepCollector collector(2);
  ASSERT_TRUE(collector.Add(Header(0), 1, Part(1, {}, {})).ok());
  EXPECT_FALSE(collector.Add(Header(0), 1, Part(1, {}, {})).ok());
  EXPECT_FALSE(collector.Add(Header(0), 2, Part(1, {}, {})).ok());
  EXPECT_EQ(collector.num_parts(), 1);
}

TEST(StepCollectorTest, RefusesPartsThatDisagreeAboutTheStep) {
  StepCollector collector(2);
  ASSERT_TRUE(collector.Add(Header(0), 0, Part(0, {}, {})).ok());
  EXPECT_FALSE(collector.Add(Header(0, 9), 1, Part(1, {}, {})).ok());
  StepHeader header = Header(0);
  header.set_finite(false);
  EXPECT_FALSE(collector.Add(header, 1, Part(1, {}, {})).ok());
  header = Header(0);
  header.set_learning_rate_factor(0.5f);
  EXPECT_FALSE(collector.Add(header, 1, Part(1, {}, {})).ok());
  EXPECT_TRUE(collector.Add(Header(0), 1, Part(1, {}, {})).ok());
}

TEST(SumPartsTest, SumsEachKeyOverThePartsThatHaveIt) {
  std::vector<StepCollector::Part> parts;
  parts.push_back(Part(0, {7, 9}, {1, 2, 3, 4}, {1, 2}));
  parts.push_back(Part(1, {}, {}));
  parts.push_back(Part(2, {9, 5}, {10, 20, 30, 40}, {4, 8}));
  const std::vector<SummedTable> sums = SumParts(parts, OneTable());
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].keys, (std::vector<uint64_t>{7, 9, 5}));
  EXPECT_EQ(sums[0].gradients, (std::vector<float>{1, 2, 13, 24, 30, 40}));
  EXPECT_EQ(sums[0].sample_counts, (std::vector<uint32_t>{1, 6, 8}));
}

TEST(SumPartsTest, CountsThatAPartDoesNotKnowAreNotKnownInTheSum) {
  std::vector<StepCollector::Part> parts;
  parts.push_back(Part(0, {7, 9}, {1, 2, 3, 4}, {1, 2}));
  parts.push_back(Part(1, {9}, {10, 20}));
  const std::vector<SummedTable> sums = SumParts(parts, OneTable());
  EXPECT_EQ(sums[0].gradients, (std::vector<float>{1, 2, 13, 24}));
  EXPECT_TRUE(sums[0].sample_counts.empty());
}

StepCollector::Complete Complete(std::vector<StepCollector::Part> parts) {
  StepCollector::Complete step;
  step.header = Header(4);
  step.parts = std::move(parts);
  return step;
}

TEST(SumStepTest, ACountOfZeroIsOneThatAnotherPartHasCounted) {
  TableOwnership ownership = OneTable();
  ownership.tables[0].needs_sample_counts = true;
  const auto sum = [&](std::vector<uint32_t> first, std::vector<uint32_t> second) {
    std::vector<StepCollector::Part> parts;
    parts.push_back(Part(0, {7, 9}, {1, 2, 3, 4}, std::move(first)));
    parts.push_back(Part(1, {9, 5}, {1, 2, 3, 4}, std::move(second)));
    return SumStep(Complete(std::move(parts)), ownership).status();
  };
  EXPECT_TRUE(sum({1, 1}, {0, 1}).ok());
  EXPECT_TRUE(sum({1, 0}, {2, 1}).ok());
  for (const absl::Status& status : {sum({1, 0}, {0, 1}), sum({0, 1}, {1, 1})}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("tables.counts: key 000000000000000"), std::string::npos)
        << status;
    EXPECT_NE(status.message().find("has a sample count of 0 over all parts of step 4"),
              std::string::npos)
        << status;
  }
  std::vector<StepCollector::Part> alone;
  alone.push_back(Part(0, {7}, {1, 2}, {0}));
  EXPECT_FALSE(SumStep(Complete(std::move(alone)), ownership).ok()) << "nobody else can have";
  ownership.tables[0].needs_sample_counts = false;
  EXPECT_TRUE(sum({0, 0}, {0, 0}).ok()) << "nothing reads them";
}

// In f32 (2^24 + 1) + 1 is 2^24, but (1 + 1) + 2^24 is 2^24 + 2. Only part order gives 2^24.
TEST(SumPartsTest, SumsInPartOrder) {
  std::vector<StepCollector::Part> parts;
  for (const float gradient : {16777216.0f, 1.0f, 1.0f}) {
    parts.push_back(Part(0, {7}, {gradient, 0}));
  }
  EXPECT_EQ(SumParts(parts, OneTable())[0].gradients[0], 16777216.0f);
}

}  // namespace
}  // namespace satrap
