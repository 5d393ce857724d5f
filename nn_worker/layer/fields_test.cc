#include "nn_worker/layer/fields.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(FieldsTest, CountsSingleVectorsAndStacks) {
  const auto fields = FieldsOf(std::vector<SampleShape>{{4}, {3, 4}, {4}}, 1);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(fields->count, 5);
  EXPECT_EQ(fields->dim, 4);
}

TEST(FieldsTest, SaysWhatIsNoField) {
  const auto refusal = [](const std::vector<SampleShape>& inputs) {
    return std::string(FieldsOf(inputs, 2).status().message());
  };
  EXPECT_EQ(refusal({{4}, {1, 2, 4}}),
            "takes inputs of shape [d] or [k, d], but input 1 is [1, 2, 4]");
  EXPECT_EQ(refusal({{0}, {0}}), "takes inputs of shape [d] or [k, d], but input 0 is [0]");
  EXPECT_EQ(refusal({{4}, {2, 5}}),
            "takes vectors of one length, but input 0 is [4] and input 1 is [2, 5]");
  EXPECT_EQ(refusal({{4}}), "takes at least 2 vectors, got 1");
}

TEST(FieldsTest, ViewsAndTargetsFollowTheInputs) {
  std::vector<float> memory(12);
  const Tensor single = TensorF32(memory.data(), 1, 2), stack = TensorF32(&memory[2], 1, 4);
  const FieldShape fields = {3, 2};
  const std::vector<Tensor> views = FieldViews(fields, {single, stack});
  ASSERT_EQ(views.size(), 3u);
  EXPECT_EQ(views[2].data, &memory[4]);
  const auto targets = FieldTargets(fields, {single, stack}, {{}, {stack, true}});
  ASSERT_EQ(targets.size(), 3u);
  EXPECT_FALSE(targets[0].wanted());
  EXPECT_TRUE(targets[2].add);
  EXPECT_EQ(targets[2].tensor.data, &memory[4]);
}

TEST(FieldsTest, PairsComeInTheOrderThatIsAskedFor) {
  const auto text = [](PairOrder order) {
    std::string all;
    for (const PairTerm& term : AllPairs(3, order)) {
      all += std::to_string(term.a) + std::to_string(term.b) + " ";
    }
    return all;
  };
  EXPECT_EQ(text(PairOrder::kSecondAfterFirst), "01 02 12 ");
  EXPECT_EQ(text(PairOrder::kFirstAfterSecond), "10 20 21 ");
}

}  // namespace
}  // namespace satrap
