// Tests a network that computes in 16 bits: which tensor has which dtype, and the rounded copy of
// the weights.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

constexpr int64_t kSamples = 40;

// The input "numeric" has one column and is concatenated with wider inputs.
constexpr char kModel[] = R"(
  layers { name: "all" inputs: "user.embedding" inputs: "numeric" inputs: "item.embedding" concat {} }
  layers { name: "deep" inputs: "all" mlp { units: 17 batch_norm {} output_units: 1 } }
  layers { name: "fm" inputs: "*.embedding" fm {} }
  layers { name: "linear" inputs: "*.linear" sum {} }
  layers { name: "logit" inputs: "deep" inputs: "fm" inputs: "linear" add {} })";

class HalfNetwork {
 public:
  explicit HalfNetwork(DType dtype)
      : backend_(NewCpuHalfBackend(2)), collectives_(NewLocalCollectives(1)) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(kModel, &options.model));
    options.inputs.numeric_width = 1;
    options.inputs.segments = {{"user", "embedding", 4, 0},
                               {"user", "linear", 1, 0},
                               {"item", "embedding", 4, 0},
                               {"item", "linear", 1, 0}};
    options.optimizer.mutable_adagrad();
    options.max_samples = kSamples;
    options.dtype = dtype;
    options.backend = backend_.get();
    options.collective = collectives_[0].get();
    auto network = Network::Create(options);
    CHECK_OK(network.status());
    network_ = *std::move(network);
  }
  Network* operator->() { return network_.get(); }

  void Fill() {
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      std::vector<float> values;
      for (int64_t i = 0; i < view.size(); ++i) {
        values.push_back(static_cast<float>(2 * UniformDouble(RandomBits(input, i)) - 1));
      }
      const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, view.rows, view.cols).value();
      CopyIn(backend_.get(), values, wide);
      backend_->Copy(wide, view, /*add=*/false);
    }
  }
  void Train(int64_t step) {
    Fill();
    CHECK_OK(network_->Forward(kSamples, PassContext::Training(step, 0)));
    std::vector<float> labels;
    for (int64_t i = 0; i < kSamples; ++i) labels.push_back(i % 3 == 0 ? 1.0f : 0.0f);
    network_->Loss(labels, {}, {});
    CHECK_OK(network_->Backward());
    CHECK_OK(network_->StartReduce());
    CHECK_OK(network_->FinishReduce());
    CHECK_OK(network_->Step({step, kSamples}, {kSamples, kSamples, 0}));
  }
  std::vector<float> Logits() {
    Fill();
    CHECK_OK(network_->Forward(kSamples, PassContext::Evaluation()));
    return network_->ReadLogits();
  }

 private:
  const std::unique_ptr<Backend> backend_;
  const std::vector<std::unique_ptr<Collective>> collectives_;
  std::unique_ptr<Network> network_;
};

TEST(NetworkPrecisionTest, ValuesOfSamplesHaveSixteenBitsAndPaddedRowsAndOneColumnIsF32) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    HalfNetwork network(dtype);
    for (const int embedding : {1, 3}) {
      EXPECT_EQ(network->input_view(embedding).dtype, dtype);
      EXPECT_EQ(network->input_gradient(embedding).dtype, dtype);
      EXPECT_EQ(network->input_view(embedding).stride, 32) << "64 bytes";
    }
    for (const int narrow : {0, 2, 4}) {
      EXPECT_EQ(network->input_view(narrow).dtype, DType::kF32) << narrow;
    }
    EXPECT_EQ(network->parameters().dtype, DType::kF32);
    EXPECT_EQ(network->gradients().dtype, DType::kF32);
  }
}

// The saved weights are the optimizer's F32 weights. If the copy were not rounded again after a
// step or after a load, the two networks would differ.
TEST(NetworkPrecisionTest, ALoadedNetworkGivesTheBitsOfTheOneThatWasSaved) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    HalfNetwork trained(dtype);
    const std::vector<float> untrained = trained.Logits();
    for (int64_t step = 0; step < 5; ++step) trained.Train(step);
    const std::vector<float> logits = trained.Logits();
    EXPECT_NE(logits, untrained);
    HalfNetwork loaded(dtype);
    ASSERT_TRUE(loaded->Load(trained->Save(), Network::LoadScope::kAll).ok());
    EXPECT_EQ(loaded.Logits(), logits);
    const NamedArray weight = trained->Parameter("deep/linear_0.weight").value();
    bool rounded = true;
    for (const float value : weight.values) {
      rounded &= value == (dtype == DType::kF16 ? F32FromF16(F16FromF32(value))
                                                : F32FromBf16(Bf16FromF32(value)));
    }
    EXPECT_FALSE(rounded) << "the optimizer's weights are those of F32";
  }
}

TEST(NetworkPrecisionTest, AModelMovesBetweenPrecisions) {
  HalfNetwork half(DType::kBF16), exact(DType::kF32);
  for (int64_t step = 0; step < 5; ++step) exact.Train(step);
  ASSERT_TRUE(half->Load(exact->Save(), Network::LoadScope::kAll).ok());
  EXPECT_EQ(half->Save(), exact->Save());
  const std::vector<float> a = half.Logits(), b = exact.Logits();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], .05);
  EXPECT_NE(a, b);
}

}  // namespace
}  // namespace satrap
