// Tests the padding of tensors and parameters on devices: which of them have it, that it holds
// zeros, and that it changes no results.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/numeric/random.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/backend/testing/planned_host_backend.h"
#include "nn_worker/backend/testing/tensor_testing.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/model/graph_builder.h"
#include "nn_worker/graph/network.h"
#include "nn_worker/graph/network_graph.h"
#include "nn_worker/graph/network_training.h"
#include "nn_worker/optimizer/dense_optimizer_factory.h"

namespace satrap {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr int64_t kMost = 12;  // samples of a part
constexpr DType kDTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

// "trunk" has two readers, so one of them adds to its gradient. Widths: 13, 11, 10, 17, 12, 9, 1.
constexpr char kModel[] = R"(
  layers { name: "bottom" inputs: "numeric" mlp { units: [ 11, 10 ] } }
  layers { name: "all" inputs: "user.embedding" inputs: "bottom" concat {} }
  layers { name: "trunk" inputs: "all" linear { units: 12 activation: RELU } }
  layers { name: "left" inputs: "trunk" linear { units: 9 activation: SIGMOID } }
  layers { name: "right" inputs: "trunk" linear { units: 9 } }
  layers { name: "both" inputs: "left" inputs: "right" multiply {} }
  layers { name: "logit" inputs: "both" linear { units: 1 } })";

NetworkOptions OptionsOf(DType dtype, Backend* backend, Collective* collective) {
  NetworkOptions options;
  CHECK(google::protobuf::TextFormat::ParseFromString(kModel, &options.model));
  options.inputs.numeric_width = 13;
  options.inputs.segments = {{"user", "embedding", 7, 0}};
  options.inputs.max_samples = options.max_samples = kMost;
  options.optimizer.set_learning_rate(0.1f);
  options.optimizer.mutable_adagrad();
  options.optimizer.mutable_averaged_weights();
  options.dtype = dtype;
  options.backend = backend;
  options.collective = collective;
  return options;
}

// The parts of a Network, whose memory a test can see.
class PaddedNetwork {
 public:
  PaddedNetwork(DType dtype, std::unique_ptr<Backend> backend, const std::string& optimizer = "")
      : backend_(std::move(backend)),
        options_(OptionsOf(dtype, backend_.get(), collectives_[0].get())) {
    CHECK(google::protobuf::TextFormat::MergeFromString(optimizer, &options_.optimizer));
    auto built = BuildGraph(options_.model, options_.inputs, dtype);
    CHECK_OK(built.status());
    graph_ = std::make_unique<NetworkGraph>(options_, *std::move(built));
    training_ = std::make_unique<NetworkTraining>(
        options_, NewDenseOptimizer(options_.optimizer).value(), &values_);
    CHECK_OK(graph_->Allocate());
    CHECK_OK(values_.Allocate(graph_->graph(), options_));
    CHECK_OK(training_->Allocate());
    values_.SetInitialValues(options_.seed);
    training_->SetInitialState();
    CHECK_OK(graph_->Bind(values_, training_->gradients(), training_->control()));
  }

  // Makes a step of `samples` samples, which applies if all gradients are finite. Returns whether
  // the gradients are finite. The first input of sample 1 is `first`.
  bool Train(int64_t step, int64_t samples, float first = 0.5f) {
    Fill(step, first);
    graph_->BeginPass(samples, PassContext::Training(step, 0));
    CHECK_OK(graph_->Forward());
    const std::vector<float> labels(samples, 1);
    const LossTargets targets = {labels, {}, {}, {}};
    graph_->Loss(absl::MakeConstSpan(&targets, 1));
    CHECK_OK(graph_->Backward());
    const float limit = std::numeric_limits<float>::max();
    const bool finite = graph_->CountGradientsBeyond(training_->gradients(), limit) == 0;
    CHECK_OK(training_->StartReduce());
    CHECK_OK(training_->FinishReduce());
    training_->Step({step, kMost}, {kMost, kMost, finite ? 0.0f : 1.0f}, /*clip_factor=*/1);
    CHECK_OK(graph_->EndStep());
    training_->EndStep();
    return finite;
  }

  // The values of every parameter, one after another.
  std::vector<float> Parameters() {
    std::vector<float> values;
    for (const FlatArray& array : values_.parameter_layout.arrays) {
      const std::vector<float> own = ReadFloats(backend_.get(), ViewOf(array, values_.parameters));
      values.insert(values.end(), own.begin(), own.end());
    }
    return values;
  }
  // Counts the values of all padding, and those of them that are not 0. OfTensors covers tensors
  // and their gradients; OfParameters covers everything that lies in a flat buffer, and the copies.
  struct Padding {
    int64_t values = 0, not_zero = 0;
  };
  Padding OfTensors() {
    Padding padding;
    for (const Tensor& tensor : graph_->memory().values) Count(tensor, &padding);
    for (const Tensor& tensor : graph_->memory().gradients) Count(tensor, &padding);
    return padding;
  }
  Padding OfParameters() {
    Padding padding;
    for (const FlatArray& array : values_.parameter_layout.arrays) {
      Count(ViewOf(array, values_.parameters), &padding);
      Count(ViewOf(array, values_.averages->averages()), &padding);
    }
    for (const Tensor& copy : values_.copies) Count(copy, &padding);
    // Adagrad's sums begin at a constant, also in their padding, so they are not counted.
    std::vector<KeptArray> states;
    training_->AppendState(&states);
    for (const KeptArray& state : states) {
      if (state.name.find("adagrad") == std::string::npos) Count(state.values, &padding);
    }
    return padding;
  }
  Padding OfGradients() {
    Padding padding;
    for (const FlatArray& array : values_.parameter_layout.arrays) {
      Count(ViewOf(array, training_->gradients()), &padding);
    }
    return padding;
  }
  const Tensor& ValueOf(const std::string& tensor) const { return In(tensor, memory().values); }
  const Tensor& GradientOf(const std::string& tensor) const {
    return In(tensor, memory().gradients);
  }
  const NetworkValues& values() const { return values_; }

 private:
  const ActivationMemory& memory() const { return graph_->memory(); }
  const Tensor& In(const std::string& name, const std::vector<Tensor>& tensors) const {
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (graph_->graph().tensors[t].name == name) return tensors[t];
    }
    CHECK(false) << name;
    return tensors[0];
  }

  void Fill(int64_t step, float first) {
    for (const int input : {0, 1}) {
      const Tensor x = memory().values[input];
      std::vector<float> values;
      for (int64_t i = 0; i < x.size(); ++i) {
        values.push_back(static_cast<float>(UniformDouble(RandomBits(step, input, i)) - .5));
      }
      if (input == 0) values[x.cols] = first;
      const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, x.rows, x.cols).value();
      CopyIn(backend_.get(), values, wide);
      backend_->Copy(wide, x, /*add=*/false);
    }
  }
  void Count(const Tensor& tensor, Padding* padding) {
    if (tensor.empty() || (tensor.zero_cols == 0 && tensor.zero_rows == 0)) return;
    const Tensor all = tensor.WithPadding();
    const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, all.rows, all.cols).value();
    backend_->Copy(all, wide, /*add=*/false);
    const std::vector<float> values = ReadFloats(backend_.get(), wide);
    for (int64_t i = 0; i < all.size(); ++i) {
      if (i / all.cols < tensor.rows && i % all.cols < tensor.cols) continue;
      ++padding->values;
      if (!(values[i] == 0)) ++padding->not_zero;
    }
  }

  const std::unique_ptr<Backend> backend_;
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
  NetworkOptions options_;
  NetworkValues values_;
  std::unique_ptr<NetworkGraph> graph_;
  std::unique_ptr<NetworkTraining> training_;
};

TEST(NetworkPaddingTest, WidthsOfLinearLayersArePaddedToMultiplesOfEightOnDevices) {
  for (const DType dtype : kDTypes) {
    PaddedNetwork device(dtype, NewHostDeviceBackend({}));
    const auto padded = [&](const std::string& name) {
      const Tensor& values = device.ValueOf(name);
      return std::vector<int64_t>{values.cols, values.padded_cols(),
                                  device.GradientOf(name).padded_cols()};
    };
    EXPECT_EQ(device.ValueOf("numeric").padded_cols(), 16);
    EXPECT_THAT(padded("all"), ElementsAre(17, 24, 24));
    EXPECT_THAT(padded("trunk"), ElementsAre(12, 16, 16));
    EXPECT_THAT(padded("both"), ElementsAre(9, 16, 16));
    EXPECT_THAT(padded("logit"), ElementsAre(1, 1, 1)) << "narrower than 8";
    EXPECT_THAT(padded("user.embedding"), ElementsAre(7, 7, 7)) << "within a concatenation";
    EXPECT_THAT(padded("bottom/linear_1"), ElementsAre(10, 10, 10)) << "within a concatenation";
    const NetworkValues& values = device.values();
    const FlatArray& first = values.parameter_layout.arrays[0];
    EXPECT_THAT((std::vector<int64_t>{first.spec.rows, first.spec.cols}), ElementsAre(13, 11));
    const Tensor weight = ViewOf(first, values.parameters);
    EXPECT_THAT((std::vector<int64_t>{weight.padded_rows(), weight.padded_cols(), weight.stride}),
                ElementsAre(16, 16, 16));
    if (dtype == DType::kF32) continue;
    EXPECT_EQ(values.copies[0].padded_rows(), 16);
    EXPECT_EQ(values.copies[0].padded_cols(), 16);
  }
  EXPECT_EQ(PaddedNetwork(DType::kF32, NewCpuBackend(1)).OfTensors().values, 0);
  EXPECT_EQ(PaddedNetwork(DType::kF32, NewCpuBackend(1)).OfParameters().values, 0);
}

TEST(NetworkPaddingTest, PlannedProductsMultiplyPaddingWhereAllTheirTensorsHaveIt) {
  PlannerLog log;
  const PaddedNetwork network(DType::kBF16, NewPlannedHostBackend({}, {}, &log));
  std::vector<std::vector<int64_t>> forward, input_gradient, weight_gradient;
  for (const ProductSpec& spec : log.prepared) {
    if (spec.transpose_a) {
      weight_gradient.push_back({spec.rows, spec.cols});
    } else {
      (spec.transpose_b ? input_gradient : forward).push_back({spec.terms, spec.cols});
    }
  }
  EXPECT_THAT(forward, Contains(ElementsAre(16, 16))) << "13 to 11";
  EXPECT_THAT(forward, Contains(ElementsAre(16, 10))) << "11 to 10, within the concatenation";
  EXPECT_THAT(forward, Contains(ElementsAre(24, 16))) << "17 to 12";
  EXPECT_THAT(input_gradient, Contains(ElementsAre(10, 16))) << "10 to 11";
  EXPECT_THAT(input_gradient, Contains(ElementsAre(16, 24))) << "12 to 17";
  EXPECT_THAT(input_gradient, Contains(ElementsAre(16, 16))) << "9 to 12, assigned";
  EXPECT_THAT(input_gradient, Contains(ElementsAre(16, 12))) << "9 to 12, added";
  EXPECT_THAT(weight_gradient, Contains(ElementsAre(16, 16))) << "13 x 11";
  EXPECT_THAT(weight_gradient, Contains(ElementsAre(16, 10))) << "11 x 10";
  EXPECT_THAT(weight_gradient, Contains(ElementsAre(24, 16))) << "17 x 12";
}

TEST(NetworkPaddingTest, PaddingHoldsZerosAfterStepsOfEverySize) {
  for (const DType dtype : kDTypes) {
    for (const bool planned : {false, true}) {
      PaddedNetwork network(dtype, planned ? NewPlannedHostBackend({}) : NewHostDeviceBackend({}));
      int64_t step = 0;
      for (const int64_t samples : {kMost, int64_t{3}, int64_t{0}, kMost, int64_t{1}}) {
        EXPECT_TRUE(network.Train(step++, samples));
        EXPECT_EQ(network.OfTensors().not_zero, 0) << samples;
        EXPECT_EQ(network.OfParameters().not_zero, 0) << samples;
        EXPECT_EQ(network.OfGradients().not_zero, 0) << samples;
      }
      EXPECT_GT(network.OfTensors().values, 0);
      EXPECT_GT(network.OfParameters().values, 0);
      EXPECT_GT(network.OfGradients().values, 0);
    }
  }
}

TEST(NetworkPaddingTest, EveryOptimizerLeavesThePaddingOfParametersAtZero) {
  for (const char* const kind :
       {"sgd {}", "adagrad {}", "adam {}", "momentum {}", "nesterov {}",
        "rmsprop { centred: true }", "adadelta {}", "amsgrad {}", "ftrl {}", "ftml {}"}) {
    PaddedNetwork network(
        DType::kBF16, NewPlannedHostBackend({}),
        absl::StrCat(kind, " parameters { pattern: '*' l2: 0.1 l1: 0.1 ", "weight_decay: 0.1 }"));
    for (int64_t step = 0; step < 3; ++step) EXPECT_TRUE(network.Train(step, kMost));
    EXPECT_EQ(network.OfParameters().not_zero, 0) << kind;
  }
}

// 0 times infinity is NaN, so such a step writes NaN to the padding of gradients.
TEST(NetworkPaddingTest, NothingOfAnInfiniteInputStaysInThePadding) {
  for (const DType dtype : kDTypes) {
    PaddedNetwork infinite(dtype, NewPlannedHostBackend({}));
    PaddedNetwork never(dtype, NewPlannedHostBackend({}));
    for (PaddedNetwork* network : {&infinite, &never}) EXPECT_TRUE(network->Train(0, kMost));
    EXPECT_FALSE(infinite.Train(1, kMost, std::numeric_limits<float>::infinity()));
    EXPECT_GT(infinite.OfGradients().not_zero, 0) << "the test would show nothing";
    EXPECT_EQ(infinite.OfParameters().not_zero, 0);
    // A part without samples has gradients of 0, whatever the last step left in memory.
    EXPECT_TRUE(infinite.Train(2, 0));
    EXPECT_EQ(infinite.OfGradients().not_zero, 0);
    EXPECT_EQ(infinite.OfParameters().not_zero, 0);
    EXPECT_TRUE(never.Train(2, 0));
    for (PaddedNetwork* network : {&infinite, &never}) EXPECT_TRUE(network->Train(3, kMost));
    EXPECT_EQ(infinite.OfTensors().not_zero, 0);
    EXPECT_EQ(infinite.OfGradients().not_zero, 0);
    EXPECT_EQ(infinite.Parameters(), never.Parameters());
  }
}

TEST(NetworkPaddingTest, ProductsWithPaddingGiveTheBitsOfThoseWithout) {
  for (const DType dtype : kDTypes) {
    PaddedNetwork planned(dtype, NewPlannedHostBackend({})), own(dtype, NewHostDeviceBackend({}));
    for (PaddedNetwork* network : {&planned, &own}) {
      for (int64_t step = 0; step < 3; ++step) EXPECT_TRUE(network->Train(step, kMost));
    }
    EXPECT_EQ(planned.Parameters(), own.Parameters());
  }
}

TEST(NetworkPaddingTest, CutsOfTheCpuAndOfADeviceHaveTheSameBytes) {
  const auto collectives = NewLocalCollectives(1);
  const auto cpu_backend = NewCpuBackend(1);
  const auto device_backend = NewPlannedHostBackend({});
  const auto make = [&](Backend* backend) {
    auto network = Network::Create(OptionsOf(DType::kF32, backend, collectives[0].get()));
    CHECK_OK(network.status());
    return *std::move(network);
  };
  const auto cpu = make(cpu_backend.get()), device = make(device_backend.get());
  EXPECT_EQ(device->Save(), cpu->Save()) << "initial values";
  EXPECT_EQ(device->num_parameters(), cpu->num_parameters());
  const NamedArray weight = device->Parameter("bottom/linear_0.weight").value();
  EXPECT_EQ(weight.rows, 13);
  EXPECT_EQ(weight.cols, 11);
  // Gives parameters, averages and optimizer states values other than the initial ones.
  cpu_backend->Fill(cpu->gradients(), 1);
  CHECK_OK(cpu->Step({0, 1}, {1, 1, 0}));
  const std::string cut = cpu->Save();
  EXPECT_NE(device->Save(), cut);
  ASSERT_TRUE(device->Load(cut, LoadScope::kAll).ok());
  EXPECT_EQ(device->Save(), cut);
  const auto back = make(cpu_backend.get());
  ASSERT_TRUE(back->Load(device->Save(), LoadScope::kAll).ok());
  EXPECT_EQ(back->Save(), cut);
}

}  // namespace
}  // namespace satrap
