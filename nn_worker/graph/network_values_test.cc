#include "nn_worker/graph/network_values.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_half_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/graph/model/graph_builder.h"

namespace satrap {
namespace {

class NetworkValuesTest : public ::testing::Test {
 protected:
  NetworkValuesTest() { options_.backend = backend_.get(); }

  // The values of a network with these layers over three numerics, with the initial values of
  // `seed`.
  NetworkValues ValuesOf(const std::string& layers, uint64_t seed = 1) {
    ModelConfig model;
    CHECK(google::protobuf::TextFormat::ParseFromString(layers, &model)) << layers;
    GraphInputs inputs;
    inputs.numeric_width = 3;
    const auto graph = BuildGraph(model, inputs, options_.dtype);
    CHECK_OK(graph.status());
    NetworkValues values;
    CHECK_OK(values.Allocate(*graph, options_));
    values.SetInitialValues(seed);
    return values;
  }
  std::vector<float> ParameterOf(const NetworkValues& values, const std::string& name) {
    for (const FlatArray& array : values.parameter_layout.arrays) {
      if (array.name == name) return ReadFloats(backend_.get(), ViewOf(array, values.parameters));
    }
    ADD_FAILURE() << "no parameter " << name;
    return {};
  }
  // The copy in 16 bits of the first parameter that has one.
  std::vector<float> FirstCopyOf(const NetworkValues& values) {
    for (const Tensor& copy : values.copies) {
      if (copy.empty()) continue;
      const Tensor wide = AllocateTensor(backend_.get(), DType::kF32, copy.rows, copy.cols).value();
      backend_->Copy(copy, wide, /*add=*/false);
      return ReadFloats(backend_.get(), wide);
    }
    ADD_FAILURE() << "no copy";
    return {};
  }

  const std::unique_ptr<Backend> backend_ = NewCpuHalfBackend(1);
  NetworkOptions options_;
};

constexpr char kDeep[] = R"(
  layers { name: "deep" inputs: "numeric" mlp { units: 4 batch_norm {} output_units: 1 } }
  layers { name: "logit" inputs: "deep" add {} })";
constexpr char kWideAndDeep[] = R"(
  layers { name: "wide" inputs: "numeric" linear { units: 1 } }
  layers { name: "deep" inputs: "numeric" mlp { units: 4 batch_norm {} output_units: 1 } }
  layers { name: "logit" inputs: "deep" inputs: "wide" add {} })";

// An experiment can therefore add a layer without changing the initial values of the other layers.
TEST_F(NetworkValuesTest, AParameterBeginsWithTheSameValuesWhateverLayersAreBesideIt) {
  const NetworkValues alone = ValuesOf(kDeep), beside = ValuesOf(kWideAndDeep);
  const NetworkValues other_seed = ValuesOf(kDeep, /*seed=*/2);
  const std::string name = alone.parameter_layout.arrays[0].name;
  EXPECT_EQ(ParameterOf(alone, name), ParameterOf(beside, name));
  EXPECT_NE(ParameterOf(alone, name), ParameterOf(other_seed, name));
}

TEST_F(NetworkValuesTest, CopiesInSixteenBitsHoldTheRoundedParametersOnceTheyAreRefreshed) {
  options_.dtype = DType::kBF16;
  NetworkValues values = ValuesOf(kDeep);
  backend_->Fill(values.parameters, 0x1.01p0f);
  EXPECT_NE(FirstCopyOf(values)[0], 1);
  values.RefreshCopies();
  for (const float value : FirstCopyOf(values)) EXPECT_EQ(value, 1);
}

TEST_F(NetworkValuesTest, LayersReadTheAveragesWhileTheyAreShownAndThenTheTrainedParameters) {
  options_.dtype = DType::kBF16;
  options_.optimizer.mutable_averaged_weights();
  NetworkValues values = ValuesOf(kDeep);
  backend_->Fill(values.parameters, 4);
  backend_->Fill(values.averages->averages(), 2);
  values.ShowAverages(true);
  EXPECT_EQ(ReadFloats(backend_.get(), values.parameters)[0], 2);
  EXPECT_EQ(FirstCopyOf(values)[0], 2);
  values.ShowAverages(false);
  EXPECT_EQ(ReadFloats(backend_.get(), values.parameters)[0], 4);
  EXPECT_EQ(FirstCopyOf(values)[0], 4);
}

TEST_F(NetworkValuesTest, ParametersStatisticsAndAveragesAreKeptUnderTheirNames) {
  options_.optimizer.mutable_averaged_weights();
  const NetworkValues values = ValuesOf(kDeep);
  const size_t parameters = values.parameter_layout.arrays.size();
  const size_t states = values.state_layout.arrays.size();
  EXPECT_GT(states, 0u) << "batch normalisation has running statistics";
  EXPECT_EQ(values.Kept(/*with_averages=*/false).size(), parameters + states);
  const std::vector<KeptArray> kept = values.Kept(/*with_averages=*/true);
  ASSERT_EQ(kept.size(), 2 * parameters + states);
  EXPECT_EQ(kept[0].name, values.parameter_layout.arrays[0].name);
  EXPECT_EQ(kept[parameters].name, values.state_layout.arrays[0].name);
  EXPECT_EQ(kept[parameters + states].name, kept[0].name + "#average");
}

}  // namespace
}  // namespace satrap
