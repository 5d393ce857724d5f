#include "nn_worker/device/kernels/scatter_rows.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "nn_worker/device/device_testing.h"
#include "nn_worker/device/kernel.h"

namespace satrap {
namespace {

constexpr uint32_t kRows = 37, kFeatures = 3, kSamples = 64;
constexpr int64_t kRowValues = 20, kLength = 2;

// Row 5 has no position and row 7 has most of them.
std::vector<std::vector<RowPosition>> RandomPositions() {
  std::vector<std::vector<RowPosition>> positions(kRows);
  SplitMix64 random(1);
  for (int i = 0; i < 400; ++i) {
    auto row = static_cast<uint32_t>(random.Below(2 * kRows));
    if (row >= kRows || row == 5) row = 7;
    positions[row].push_back({static_cast<uint32_t>(random.Below(kFeatures)),
                              static_cast<uint32_t>(random.Below(kSamples)),
                              static_cast<uint32_t>(random.Below(kLength)),
                              static_cast<float>(random.Below(7)) / 4});
  }
  return positions;
}

struct Problem {
  std::vector<std::vector<RowPosition>> positions = RandomPositions();
  std::vector<ScatterSegment> segments = {{0, 1}, {2, 18}};
  // [segment][feature]; one is not wanted.
  std::vector<std::vector<float>> gradients = {RandomValues(kSamples * kLength, 1),
                                               RandomValues(kSamples* kLength, 2),
                                               RandomValues(kSamples* kLength, 3),
                                               RandomValues(kSamples* kLength * 18, 4),
                                               {},
                                               RandomValues(kSamples* kLength * 18, 6)};
};

template <typename In>
std::vector<float> Scatter(TestDevice* device, const Problem& problem) {
  std::vector<uint32_t> starts = {0};
  std::vector<RowPosition> flat;
  for (const auto& row : problem.positions) {
    flat.insert(flat.end(), row.begin(), row.end());
    starts.push_back(static_cast<uint32_t>(flat.size()));
  }
  std::vector<ScatterSource<In>> sources;
  for (size_t i = 0; i < problem.gradients.size(); ++i) {
    std::vector<In> values;
    for (const float value : problem.gradients[i]) values.push_back(FromFloat<In>(value));
    sources.push_back({values.empty() ? nullptr : device->Put(values),
                       kLength * problem.segments[i / kFeatures].width});
  }
  const ScatterArgs<In> args = {device->Put(starts),
                                device->Put(flat),
                                device->Put(problem.segments),
                                device->Put(sources),
                                2,
                                kFeatures};
  float* const out = device->Room<float>(kRows * kRowValues);
  ScatterRows(device->stream(), args, MatrixOf(out, kRows, kRowValues));
  return device->Get(out, kRows * kRowValues);
}

void ExpectSums(const Problem& problem, const std::vector<float>& got, double tolerance) {
  for (uint32_t r = 0; r < kRows; ++r) {
    EXPECT_TRUE(std::isnan(got[r * kRowValues + 1])) << "no segment has this column";
    for (size_t segment = 0; segment < 2; ++segment) {
      const auto [column, width] = problem.segments[segment];
      for (int32_t c = 0; c < width; ++c) {
        double sum = 0;
        for (const RowPosition& position : problem.positions[r]) {
          const auto& gradient = problem.gradients[segment * kFeatures + position.feature];
          if (gradient.empty()) continue;
          sum += static_cast<double>(position.coefficient) *
                 gradient[(position.sample * kLength + position.position) * width + c];
        }
        ASSERT_NEAR(got[r * kRowValues + column + c], sum, tolerance) << r << " " << column + c;
      }
    }
  }
}

TEST_P(KernelTest, GradientsAreSummedByRow) {
  const Problem problem;
  ExpectSums(problem, Scatter<float>(&device_, problem), 1e-4);
  ExpectSums(problem, Scatter<Half>(&device_, problem), 0.1);
  ExpectSums(problem, Scatter<Bf16>(&device_, problem), 1);
}

TEST_P(KernelTest, RowSumsHaveTheSameBitsInEveryOrder) {
  Problem problem;
  TestDevice forward;
  auto got = Scatter<float>(&device_, problem), expected = Scatter<float>(&forward, problem);
  // The column that is not written is NaN, which is not equal to itself.
  for (uint32_t r = 0; r < kRows; ++r) got[r * kRowValues + 1] = expected[r * kRowValues + 1] = 0;
  EXPECT_EQ(got, expected);
}

IN_EVERY_ORDER(KernelTest);

}  // namespace
}  // namespace satrap
