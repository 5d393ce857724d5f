#include "nn_worker/device/kernels/one_output.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/activation.h"
#include "nn_worker/device/testing/device_testing.h"
#include "nn_worker/device/testing/typed_values.h"

namespace satrap {
namespace {

constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBF16};
// Widths around those of octets, of the lanes of a sample, of tiles and of the weights that a block
// holds.
constexpr int64_t kWidths[] = {0, 1, 7, 13, 64, 400, 429, 2051};

// How far a result of this type may be from a sum of `terms` products, each at most 1.
double Tolerance(ElementType type, int64_t terms) {
  const double sums = 2e-6 * (1 + static_cast<double>(terms));
  if (type == ElementType::kF32) return sums;
  return sums + (type == ElementType::kF16 ? 0x1p-10 : 0x1p-7) * std::sqrt(1.0 + terms);
}

std::vector<float> Forward(TestDevice* device, const Values& x, const Values& w, const Values& bias,
                           Activation activation, ElementType y_type, bool aligned) {
  const Values y = PutRandom(device, y_type, x.rows, 1, 9, aligned);
  OneOutputForward(device->stream(), x, w, bias, activation, y);
  return GetValues(device, y);
}

TEST_P(KernelTest, OneOutputIsThatOfALoop) {
  for (const ElementType type : kTypes) {
    for (const ElementType w_type : {type, ElementType::kF32}) {
      for (const int64_t in : kWidths) {
        if (w_type != type && in != 13 && in != 429) continue;
        for (const bool aligned : {true, false}) {
          const int64_t n = 35;
          const Values x = PutRandom(&device_, type, n, in, 1, aligned);
          const Values w = PutRandom(&device_, w_type, in, 1, 2, aligned);
          const Values bias = PutRandom(&device_, w_type, 1, 1, 3, aligned);
          const auto got = Forward(&device_, x, w, bias, Activation::kRelu, type, aligned);
          const auto of_x = GetValues(&device_, x), of_w = GetValues(&device_, w),
                     of_bias = GetValues(&device_, bias);
          for (int64_t i = 0; i < n; ++i) {
            double sum = of_bias[0];
            for (int64_t c = 0; c < in; ++c) sum += of_x[i * in + c] * of_w[c];
            ASSERT_NEAR(got[i], std::fmax(0, sum), Tolerance(type, in)) << in << " " << aligned;
          }
        }
      }
    }
  }
}

TEST_P(KernelTest, OneOutputNeedsNoBiasAndNoSamples) {
  const Values x = PutValues(&device_, ElementType::kF32, 2, 2, {1, 2, 3, -4}, true);
  const Values w = PutValues(&device_, ElementType::kF32, 2, 1, {10, 1}, true);
  EXPECT_EQ(Forward(&device_, x, w, {}, Activation::kLinear, ElementType::kF32, true),
            (std::vector<float>{12, 26}));
  const Values none = PutRandom(&device_, ElementType::kF32, 0, 2, 1, true);
  EXPECT_TRUE(Forward(&device_, none, w, {}, Activation::kLinear, ElementType::kF32, true).empty());
}

// There are so many samples that blocks take several rounds.
TEST(OneOutputTest, ThereMayBeMoreSamplesThanBlocksTakeAtOnce) {
  TestDevice device;
  const int64_t n = 2048 * 32 + 40;
  const auto values = RandomValues(n * 2, 1);
  const Values x = {device.Put(values), n, 2, 2};
  const Values w = PutValues(&device, ElementType::kF32, 2, 1, {1, 1}, true);
  const Values y = {device.Room<float>(n), n, 1, 1};
  OneOutputForward(device.stream(), x, w, {}, Activation::kLinear, y);
  const auto got = GetValues(&device, y);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[i], values[2 * i] + values[2 * i + 1]) << i;
}

TEST_P(KernelTest, OneOutputHasTheSameBitsInEveryOrderAndAlignment) {
  TestDevice forward;
  const auto run = [](TestDevice* device, ElementType type, bool aligned) {
    std::vector<float> values = RandomValues(40 * 429, 1);
    for (float& value : values) value = ToFloat(FromFloat<Bf16>(value));
    return Forward(device, PutValues(device, type, 40, 429, values, aligned),
                   PutRandom(device, ElementType::kF32, 429, 1, 2, aligned), {},
                   Activation::kLinear, ElementType::kF32, aligned);
  };
  const auto expected = run(&forward, ElementType::kBF16, true);
  EXPECT_EQ(run(&device_, ElementType::kBF16, true), expected);
  EXPECT_EQ(run(&device_, ElementType::kBF16, false), expected);
  EXPECT_EQ(run(&device_, ElementType::kF32, true), expected);
}

struct BackwardCase {
  ElementType x, w, dz, dx;
  int64_t n, in;
  bool aligned, add, relu;
};
struct BackwardResult {
  std::vector<float> dx, dw, db, input_bias;
};

class Backward {
 public:
  Backward(TestDevice* device, const BackwardCase& of) : device_(*device), of_(of) {
    gradient.x = PutRandom(device, of.x, of.n, of.in, 1, of.aligned);
    gradient.w = PutRandom(device, of.w, of.in, 1, 2, of.aligned);
    gradient.dz = PutRandom(device, of.dz, of.n, 1, 3, of.aligned);
    gradient.dx = PutRandom(device, of.dx, of.n, of.in, 4, of.aligned);
    gradient.add = of.add;
    gradient.relu_of_x = of.relu;
    gradient.dw = {device->Room<float>(of.in * 2), of.in, 1, 2};
    gradient.db = device->Room<float>(1);
    gradient.input_bias_gradient = device->Room<float>(of.in);
  }
  BackwardResult Run() {
    OneOutputBackward(device_.stream(), gradient,
                      device_.Room<float>(OneOutputPartials(of_.n, of_.in)));
    BackwardResult result;
    if (gradient.dx.data != nullptr) result.dx = GetValues(&device_, gradient.dx);
    if (gradient.dw.data != nullptr) {
      const auto dw = device_.Get(gradient.dw.data, of_.in * 2);
      for (int64_t c = 0; c < of_.in; ++c) result.dw.push_back(dw[2 * c]);
    }
    if (gradient.db != nullptr) result.db = device_.Get(gradient.db, 1);
    if (gradient.input_bias_gradient != nullptr) {
      result.input_bias = device_.Get(gradient.input_bias_gradient, of_.in);
    }
    return result;
  }
  OneOutputGradient gradient;

 private:
  TestDevice& device_;
  const BackwardCase of_;
};

void ExpectLoop(TestDevice* device, const BackwardCase& of) {
  Backward backward(device, of);
  const OneOutputGradient& g = backward.gradient;
  const Values x(const_cast<void*>(g.x.data), of.n, of.in, g.x.stride, of.x);
  const Values w(const_cast<void*>(g.w.data), of.in, 1, g.w.stride, of.w);
  const Values z(const_cast<void*>(g.dz.data), of.n, 1, g.dz.stride, of.dz);
  const auto of_x = GetValues(device, x), of_w = GetValues(device, w), dz = GetValues(device, z),
             before = GetValues(device, g.dx);
  const BackwardResult got = backward.Run();
  const double tolerance = 2e-6 * (1 + static_cast<double>(of.n));
  double db = 0;
  for (int64_t i = 0; i < of.n; ++i) db += dz[i];
  ASSERT_NEAR(got.db[0], db, tolerance);
  for (int64_t c = 0; c < of.in; ++c) {
    double dw = 0, input_bias = 0;
    for (int64_t i = 0; i < of.n; ++i) {
      const int64_t at = i * of.in + c;
      dw += of_x[at] * dz[i];
      double dx = dz[i] * of_w[c] + (of.add ? before[at] : 0);
      if (of.relu && !(of_x[at] > 0)) dx = 0;
      ASSERT_NEAR(got.dx[at], dx, Tolerance(of.dx, 1)) << i << " " << c;
      input_bias += got.dx[at];
    }
    ASSERT_NEAR(got.dw[c], dw, tolerance) << c;
    ASSERT_NEAR(got.input_bias[c], input_bias, 2 * tolerance) << c;
  }
}

TEST_P(KernelTest, GradientsOfOneOutputAreThoseOfALoop) {
  for (const int64_t in : {0, 1, 7, 13, 429, 600}) {
    for (const ElementType type : kTypes) {
      for (const bool aligned : {true, false}) {
        const int64_t n = in < 400 ? 30 : 70;
        ExpectLoop(&device_, {type, type, ElementType::kF32, type, n, in, aligned, false, true});
        ExpectLoop(&device_, {type, type, type, type, n, in, aligned, true, false});
      }
    }
  }
}

TEST_P(KernelTest, GradientsOfOneOutputTakeAnyTypes) {
  for (const ElementType x : kTypes) {
    for (const ElementType dx : kTypes) {
      for (const bool aligned : {true, false}) {
        ExpectLoop(&device_,
                   {x, ElementType::kF32, ElementType::kBF16, dx, 50, 45, aligned, true, true});
      }
    }
  }
}

TEST_P(KernelTest, GradientsOfOneOutputAreThoseOfSeparatePasses) {
  const auto bf16 = ElementType::kBF16;
  const BackwardCase of = {bf16, bf16, ElementType::kF32, bf16, 200, 429, true, false, true};
  Backward together(&device_, of), dx(&device_, of), dw(&device_, of);
  const BackwardResult expected = together.Run();
  dx.gradient.dw = {};
  dx.gradient.db = dx.gradient.input_bias_gradient = nullptr;
  dx.gradient.x = {};
  dx.gradient.relu_of_x = false;
  dx.Run();
  // The gradient of the ReLU below, and the gradient of its bias.
  const Values last = dx.gradient.dx;
  ActivateGrad(device_.stream(), Activation::kRelu, together.gradient.x, last, last, false);
  EXPECT_EQ(GetValues(&device_, last), expected.dx);
  float* const sums = device_.Room<float>(of.in);
  ColumnSum(device_.stream(), last, device_.Room<float>(ColumnSumPartials(of.n, of.in)), sums);
  EXPECT_EQ(device_.Get(sums, of.in), expected.input_bias);
  dw.gradient.dx = {};
  dw.gradient.w = {};
  dw.gradient.relu_of_x = false;
  dw.gradient.input_bias_gradient = nullptr;
  const BackwardResult of_dw = dw.Run();
  EXPECT_EQ(of_dw.dw, expected.dw);
  EXPECT_EQ(of_dw.db, expected.db);
}

TEST_P(KernelTest, GradientsOfOneOutputHaveTheSameBitsInEveryOrderAndAlignment) {
  TestDevice forward;
  BackwardCase of = {ElementType::kF16,
                     ElementType::kF32,
                     ElementType::kF32,
                     ElementType::kF16,
                     700,
                     40,
                     true,
                     false,
                     true};
  const BackwardResult expected = Backward(&forward, of).Run();
  for (const bool aligned : {true, false}) {
    of.aligned = aligned;
    const BackwardResult got = Backward(&device_, of).Run();
    EXPECT_EQ(got.dx, expected.dx);
    EXPECT_EQ(got.dw, expected.dw);
    EXPECT_EQ(got.db, expected.db);
    EXPECT_EQ(got.input_bias, expected.input_bias);
  }
}

TEST_P(KernelTest, GradientsOfOneOutputWithoutSamplesAreZero) {
  const auto f32 = ElementType::kF32;
  const BackwardResult got =
      Backward(&device_, {f32, f32, f32, f32, 0, 5, true, false, true}).Run();
  EXPECT_EQ(got.dw, std::vector<float>(5, 0));
  EXPECT_EQ(got.db, std::vector<float>(1, 0));
  EXPECT_EQ(got.input_bias, std::vector<float>(5, 0));
}

}  // namespace
}  // namespace satrap
