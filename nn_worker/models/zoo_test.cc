#include "nn_worker/models/zoo.h"

#include <string>
#include <vector>

#include "common/base/check.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

// The trainable values of a zoo model over `features` features of embeddings of `dim`.
int64_t DenseParameters(const std::string& name, int features, int64_t dim, int64_t numerics) {
  const auto backend = NewCpuBackend(1);
  const auto collectives = NewLocalCollectives(1);
  NetworkOptions options;
  auto model = ZooModel(name);
  CHECK_OK(model.status());
  options.model = *model;
  options.inputs.numeric_width = numerics;
  for (int f = 0; f < features; ++f) {
    options.inputs.segments.push_back({"f" + std::to_string(f), "embedding", dim, 0});
    options.inputs.segments.push_back({"f" + std::to_string(f), "linear", 1, 0});
  }
  options.max_samples = 3;
  options.backend = backend.get();
  options.collective = collectives[0].get();
  auto network = Network::Create(options);
  CHECK_OK(network.status());
  for (int64_t step = 0; step < 2; ++step) {
    CHECK_OK((*network)->Forward(3, PassContext::Training(step, 0)));
    (*network)->Loss({1, 0, 1}, {}, {});
    CHECK_OK((*network)->Backward());
    CHECK_OK((*network)->Step({step, 3, 1}));
  }
  return (*network)->num_parameters();
}

// The dense part of M(i), three layers of 400 over i inputs, as counted in the logs of BARS.
int64_t Mlp(int64_t inputs) { return inputs * 400 + 400 + 2 * (400 * 400 + 400); }

// Frappe: 10 fields of dim 10 and 5,389 rows; the published counts hold the rows too.
constexpr int64_t kRows = 5389;

TEST(ZooTest, HasThePublishedParameterCountsOnFrappe) {
  EXPECT_EQ(kRows + DenseParameters("lr", 10, 10, 0), 5390);
  EXPECT_EQ(kRows * 11 + DenseParameters("fm", 10, 10, 0), 59280);
  EXPECT_EQ(kRows * 11 + DenseParameters("deepfm_bn", 10, 10, 0), 423280);
  EXPECT_EQ(DenseParameters("deepfm", 10, 10, 0), Mlp(100) + 401);
  EXPECT_EQ(DenseParameters("wide_deep", 10, 10, 0), Mlp(100) + 401);
}

TEST(ZooTest, NumericsAddTheirColumns) {
  EXPECT_EQ(DenseParameters("lr", 26, 16, 13), 13 + 1);
  EXPECT_EQ(DenseParameters("deepfm", 26, 16, 13), Mlp(26 * 16 + 13) + 401 + 13);
}

TEST(ZooTest, AdultIsPersias) {
  EXPECT_EQ(DenseParameters("adult_persia", 8, 8, 5), (5 * 16 + 16) + 2 * 16 + (64 * 128 + 128) +
                                                          2 * 128 + (144 * 256 + 256) +
                                                          (256 * 128 + 128) + (128 + 1));
}

TEST(ZooTest, EveryModelTrains) {
  for (const std::string& name : ZooNames()) {
    EXPECT_GT(DenseParameters(name, 3, 4, 2), 0) << name;
  }
}

TEST(ZooTest, ResolvesANameAndLeavesLayersAlone) {
  ModelConfig model;
  model.set_zoo("adult_persia");
  ASSERT_TRUE(ResolveZoo(&model).ok());
  EXPECT_EQ(model.output(), "deep");
  EXPECT_EQ(model.layers_size(), 6);
  model.mutable_layers()->DeleteSubrange(1, 5);
  ASSERT_TRUE(ResolveZoo(&model).ok());
  EXPECT_EQ(model.layers_size(), 1);
  ModelConfig unknown;
  unknown.set_zoo("dfm");
  EXPECT_EQ(ResolveZoo(&unknown).message(),
            "model.zoo: no model \"dfm\"; there are adult_persia, deepfm, deepfm_bn, fm, lr, "
            "wide_deep");
}

}  // namespace
}  // namespace satrap
