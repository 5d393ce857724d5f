#include "nn_worker/metrics/recent_auc.h"

#include <cmath>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(RecentAucTest, IsNearTheExactOne) {
  RecentAuc recent(100000);
  Auc exact;
  for (int i = 0; i < 30000; ++i) {
    const float label = RandomBits(1, i) % 4 == 0 ? 1.0f : 0.0f;
    const float logit = static_cast<float>(NormalDouble(2, i)) + label;
    recent.Add({logit}, {label}, {}, {});
    exact.Add(logit, label, 1);
  }
  EXPECT_NEAR(recent.Compute().value, exact.Compute().value, 1e-4);
}

TEST(RecentAucTest, ForgetsWhatIsTwiceAsOld) {
  RecentAuc recent(10);
  const std::vector<float> labels = {0, 1};
  for (int i = 0; i < 10; ++i) recent.Add({1, -1}, labels, {}, {});  // wrong
  EXPECT_EQ(recent.Compute().value, 0);
  for (int i = 0; i < 10; ++i) recent.Add({-1, 1}, labels, {}, {});  // right
  EXPECT_EQ(recent.Compute().value, 1);
}

TEST(RecentAucTest, TakesLogitsOfAnySize) {
  RecentAuc recent(10);
  EXPECT_EQ(recent.Compute().reason, "no positive sample");
  recent.Add({INFINITY, -INFINITY, NAN, 1e30f}, {1, 0, 0, 0}, {}, {1, 1, 1, 0});
  EXPECT_EQ(recent.Compute().value, 1);
}

}  // namespace
}  // namespace satrap
