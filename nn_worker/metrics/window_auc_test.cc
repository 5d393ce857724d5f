#include "nn_worker/metrics/window_auc.h"

#include <cmath>
#include <vector>

#include "common/numeric/random.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

TEST(WindowAucTest, IsNearTheExactOne) {
  WindowAuc window(100000);
  Auc exact;
  for (int i = 0; i < 30000; ++i) {
    const float label = RandomBits(1, i) % 4 == 0 ? 1.0f : 0.0f;
    const float logit = static_cast<float>(NormalDouble(2, i)) + label;
    window.Add({logit}, {label}, {}, {});
    exact.Add(logit, label, 1);
  }
  EXPECT_NEAR(window.Compute().value, exact.Compute().value, 1e-4);
}

TEST(WindowAucTest, ForgetsWhatLiesTwoWindowsBack) {
  WindowAuc window(10);
  const std::vector<float> labels = {0, 1};
  for (int i = 0; i < 10; ++i) window.Add({1, -1}, labels, {}, {});  // wrong
  EXPECT_EQ(window.Compute().value, 0);
  for (int i = 0; i < 10; ++i) window.Add({-1, 1}, labels, {}, {});  // right
  EXPECT_EQ(window.Compute().value, 1);
}

TEST(WindowAucTest, TakesLogitsOfAnySize) {
  WindowAuc window(10);
  EXPECT_EQ(window.Compute().reason, "no positive sample");
  window.Add({INFINITY, -INFINITY, NAN, 1e30f}, {1, 0, 0, 0}, {}, {1, 1, 1, 0});
  EXPECT_EQ(window.Compute().value, 1);
}

}  // namespace
}  // namespace satrap
