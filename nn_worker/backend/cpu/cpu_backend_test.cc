#include "nn_worker/backend/cpu/cpu_backend.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/numeric/denormals.h"
#include "common/numeric/random.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, BackendConformance,
                         testing::Values<BackendFactory>([] { return NewCpuBackend(1); },
                                                         [] { return NewCpuBackend(3); }));
INSTANTIATE_TEST_SUITE_P(Cpu, LinearConformance,
                         testing::Values<BackendFactory>([] { return NewCpuBackend(1); },
                                                         [] { return NewCpuBackend(3); }));
INSTANTIATE_TEST_SUITE_P(Cpu, InteractionConformance,
                         testing::Values<BackendFactory>([] { return NewCpuBackend(1); },
                                                         [] { return NewCpuBackend(3); }));
INSTANTIATE_TEST_SUITE_P(Cpu, LossConformance,
                         testing::Values<BackendFactory>([] { return NewCpuBackend(1); },
                                                         [] { return NewCpuBackend(3); }));

// All values that a training step of one layer computes, in one list.
std::vector<float> LayerStep(Backend* backend, int64_t n, int64_t in, int64_t out) {
  std::vector<float> x(n * in), w(in * out), y(n * out), dy(n * out), dx(n * in), dw(in * out);
  std::vector<float> bias(out), db(out);
  for (std::vector<float>* values : {&x, &w, &dy, &bias}) {
    for (size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = static_cast<float>(UniformDouble(RandomBits(values->size(), i)) - 0.5);
    }
  }
  LinearGradArgs args;
  args.x = TensorF32(x.data(), n, in);
  args.w = TensorF32(w.data(), in, out);
  args.activation = Activation::kRelu;
  args.y = TensorF32(y.data(), n, out);
  args.dy = TensorF32(dy.data(), n, out);
  args.dx = {TensorF32(dx.data(), n, in), false};
  args.dw = TensorF32(dw.data(), in, out);
  args.db = TensorF32(db.data(), 1, out);
  backend->Linear(args.x, args.w, TensorF32(bias.data(), 1, out), Activation::kRelu, args.y);
  backend->LinearGrad(args);
  std::vector<float> all;
  for (const std::vector<float>* values : {&y, &dx, &dw, &db}) {
    all.insert(all.end(), values->begin(), values->end());
  }
  return all;
}

TEST(CpuBackendTest, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const auto& [n, in, out] :
       {std::array<int64_t, 3>{1000, 429, 400}, {4096, 64, 32}, {77, 40, 1}}) {
    const std::vector<float> one = LayerStep(NewCpuBackend(1).get(), n, in, out);
    for (const int threads : {2, 3, 5}) {
      const std::vector<float> many = LayerStep(NewCpuBackend(threads).get(), n, in, out);
      EXPECT_EQ(std::memcmp(one.data(), many.data(), one.size() * sizeof(float)), 0)
          << threads << " threads, " << n << " x " << in << " x " << out;
    }
  }
}

// From the second step on the unit is dead and gets gradients of 0.
TEST(CpuBackendTest, AdamBringsTheMomentsOfADeadUnitToZero) {
  constexpr int64_t kCount = 40000;  // several parts, so several threads
  for (const int threads : {1, 3}) {
    const auto backend = NewCpuBackend(threads);
    std::vector<float> w(kCount, .5f), gradient(kCount, 1e-3f), m(kCount), v(kCount);
    const Tensor control = AllocateControl(backend.get()).value();
    const Tensor sums = AllocateTensor(backend.get(), DType::kF32, 1, kNumStepSums).value();
    CopyIn(backend.get(), std::vector<float>{1, 1, 0}, sums);
    StepPlan plan;
    plan.learning_rate = .01f;
    backend->DecideStep(plan, sums, control);
    OptimizerRule adam;
    adam.kind = OptimizerKind::kAdam;
    adam.beta1 = .9f;
    adam.beta2 = .999f;
    adam.epsilon = 1e-8f;
    const auto step = [&] {
      backend->OptimizerStep(control, adam, TensorF32(gradient.data(), 1, kCount),
                             TensorF32(w.data(), 1, kCount),
                             {TensorF32(m.data(), 1, kCount), TensorF32(v.data(), 1, kCount)}, {});
    };
    step();
    gradient.assign(kCount, 0);
    for (int i = 0; i < 1500; ++i) {
      step();
      ASSERT_NE(std::fpclassify(m[0]), FP_SUBNORMAL) << "step " << i;
    }
    EXPECT_EQ(m, std::vector<float>(kCount, 0)) << threads << " threads";
    step();
    EXPECT_EQ(m, std::vector<float>(kCount, 0)) << threads << " threads";
  }
}

TEST(CpuBackendTest, MatrixProductsFlushDenormalsToZeroInEveryThread) {
  constexpr int64_t n = 4000, in = 20, out = 24;  // many slices; the last is not full
  const auto backend = NewCpuBackend(3);
  std::vector<float> x(n * in, 1e-25f), w(in * out, 1e-15f), y(n * out, 7);
  const auto product = [&] {
    backend->Linear(TensorF32(x.data(), n, in), TensorF32(w.data(), in, out), Tensor(),
                    Activation::kLinear, TensorF32(y.data(), n, out));
  };
  for (int round = 0; round < 20; ++round) {
    product();
    ASSERT_EQ(y, std::vector<float>(n * out, 0)) << "subnormal results";
  }
  x.assign(n * in, 1e-40f);
  w.assign(in * out, 1e20f);
  product();
  EXPECT_EQ(y, std::vector<float>(n * out, 0)) << "subnormal operands";
}

}  // namespace
}  // namespace satrap
