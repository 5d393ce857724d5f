#include "embedding_ps/optimizer/sgd.h"

#include "embedding_ps/optimizer/testing/reference_check.h"

namespace satrap {
namespace {

TEST(SgdTest, FollowsTheScalarReference) {
  SparseOptimizerConfig config;
  config.mutable_sgd();
  ExpectFollowsReference(
      *OptimizerOf(config), 19,
      [](double lr, const std::vector<double>& g, std::vector<double>& w, std::vector<double>&) {
        for (size_t i = 0; i < w.size(); ++i) w[i] -= lr * g[i];
      });
}

TEST(SgdTest, KeepsNoState) {
  SparseOptimizerConfig config;
  config.mutable_sgd();
  EXPECT_EQ(OptimizerOf(config)->StateSize(16), 0);
}

}  // namespace
}  // namespace satrap
