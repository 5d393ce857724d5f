#include "embedding_ps/optimizer/rowwise_adagrad.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

SparseOptimizerConfig Config() {
  SparseOptimizerConfig config;
  config.mutable_rowwise_adagrad()->set_initial_accumulator(0.01f);
  return config;
}

TEST(RowwiseAdagradTest, FollowsTheScalarReference) {
  ExpectFollowsReference(
      *OptimizerOf(Config()), 19,
      [](double lr, const std::vector<double>& g, std::vector<double>& w, std::vector<double>& a) {
        double squares = 0;
        for (const double x : g) squares += x * x;
        a[0] += squares / g.size();
        for (size_t i = 0; i < w.size(); ++i) {
          w[i] -= lr * g[i] / (std::sqrt(a[0]) + 1e-8);
        }
      });
}

TEST(RowwiseAdagradTest, KeepsOneFloatASegment) {
  EXPECT_EQ(OptimizerOf(Config())->StateSize(16), 1);
  EXPECT_EQ(OptimizerOf(Config())->StateSize(1), 1);
}

TEST(RowwiseAdagradTest, RefusesConstantsOutOfRange) {
  SparseOptimizerConfig config = Config();
  config.mutable_rowwise_adagrad()->set_epsilon(-1);
  EXPECT_FALSE(NewSparseOptimizer(config).ok());
}

}  // namespace
}  // namespace satrap
