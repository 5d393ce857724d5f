// The part of BackendConformance that tests losses (loss_operations.h).

#include <cmath>
#include <limits>
#include <vector>

#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/backend_conformance.h"

namespace satrap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LossConformance);

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// More rows than one piece of a loop, one row, and no rows.
constexpr int64_t kRows[] = {300, 1, 0};

std::vector<std::vector<float>> Column(int64_t rows, float (*value)(int64_t)) {
  std::vector<std::vector<float>> column;
  for (int64_t i = 0; i < rows; ++i) column.push_back({value(i)});
  return column;
}

float MaskOf(int64_t i) { return i % 7 == 3 ? 0.0f : 1.0f; }
float WeightOf(int64_t i) { return static_cast<float>(i % 5) / 2; }
float ClassOf(int64_t i) { return MaskOf(i) == 0 ? kNan : static_cast<float>(i * i % 5); }

// Rows [p | n]: some samples are in many pairs, and some in none.
std::vector<std::vector<uint32_t>> PairsOf(int64_t rows) {
  std::vector<std::vector<uint32_t>> pairs;
  for (int64_t m = 0; m + 1 < rows; ++m) {
    const auto p = static_cast<uint32_t>(m * m % (rows / 2));
    pairs.push_back({p, static_cast<uint32_t>(rows / 2 + m % 3)});
  }
  return pairs;
}

void ExpectSums(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  EXPECT_NEAR(got[0], want[0], tolerance);
  EXPECT_NEAR(got[1], want[1], tolerance);
}

}  // namespace

TEST_P(LossConformance, SquaredErrorByHand) {
  const Tensor dz = New(3, 1, 4), sums = New(1, 2, 0, DType::kF64);
  backend_->SquaredError(ControlThatApplies(backend_.get()), Of({{1}, {-2}, {5}}),
                         Of({{3}, {-2.5}, {kNan}}), Of({{2}, {1}, {9}}), Of({{1}, {1}, {0}}), dz,
                         sums);
  EXPECT_EQ(Values(dz), (std::vector<float>{-8, 1, 0}));
  EXPECT_EQ(Doubles(sums), (std::vector<double>{8.25, 3}));
}

TEST_P(LossConformance, SquaredErrorOfManyRows) {
  for (const int64_t rows : kRows) {
    const Tensor z = Random(rows, 1, 61, 3), y = Random(rows, 1, 62);
    const Tensor dz = New(rows, 1, 16), sums = New(1, 2, 5, DType::kF64);
    Tensor weights, mask;
    if (rows > 0) {
      weights = Of(Column(rows, WeightOf));
      mask = Of(Column(rows, MaskOf));
    }
    const Tensor want = NewReference(rows, 1), want_sums = NewReference(1, 2, DType::kF64);
    reference_->SquaredError(ControlThatApplies(reference_.get()), Reference(z), Reference(y),
                             Reference(weights), Reference(mask), want, want_sums);
    backend_->SquaredError(ControlThatApplies(backend_.get()), z, y, weights, mask, dz, sums);
    ExpectNear(dz, want, 1e-6);
    ExpectSums(Doubles(sums), ReadDoubles(reference_.get(), want_sums), 1e-5);
  }
}

TEST_P(LossConformance, PairwiseLogisticByHand) {
  // Some scores differ by 200, so that an exponential in the textbook form is infinite in f32.
  const Tensor scores = Of({{1}, {1}, {-200}, {200}, {7}});
  const Tensor pairs = New(3, 2, 0, DType::kU32);
  CopyIn(backend_.get(), std::vector<uint32_t>{0, 1, 3, 2, 2, 3}, pairs);
  const Tensor dz = New(5, 1, 2), sums = New(1, 2, 0, DType::kF64);
  backend_->PairwiseLogistic(ControlThatApplies(backend_.get()), scores, pairs,
                             Of({{1}, {5}, {.5}}), dz, sums);
  EXPECT_EQ(Values(dz), (std::vector<float>{-.5, .5, -.5, .5, 0}));
  EXPECT_NEAR(Doubles(sums)[0], std::log(2.0) + .5 * 400, 1e-5);
  EXPECT_EQ(Doubles(sums)[1], 6.5);
}

TEST_P(LossConformance, PairwiseLogisticOfManyPairs) {
  for (const int64_t rows : kRows) {
    const Tensor scores = Random(rows, 1, 63, 5);
    const std::vector<std::vector<uint32_t>> of = PairsOf(rows);
    const auto count = static_cast<int64_t>(of.size());
    const Tensor pairs = New(count, 2, 16, DType::kU32), weights = Random(count, 1, 64);
    for (int64_t m = 0; m < count; ++m) CopyIn(backend_.get(), of[m], pairs.Rows(m, 1));
    const Tensor dz = New(rows, 1, 4), sums = New(1, 2, 0, DType::kF64);
    const Tensor want = NewReference(rows, 1), want_sums = NewReference(1, 2, DType::kF64);
    reference_->PairwiseLogistic(ControlThatApplies(reference_.get()), Reference(scores),
                                 Reference(pairs), Reference(weights), want, want_sums);
    backend_->PairwiseLogistic(ControlThatApplies(backend_.get()), scores, pairs, weights, dz,
                               sums);
    ExpectNear(dz, want, 1e-4);
    ExpectSums(Doubles(sums), ReadDoubles(reference_.get(), want_sums), 1e-4);
  }
}

// Covers equal logits, logits that differ by 400, and a masked sample whose label is NaN.
TEST_P(LossConformance, SoftmaxCrossEntropyByHand) {
  const Tensor z = Of({{0, 0, 0, 0}, {-200, 200, 0, 0}, {1, 2, 3, 4}});
  const Tensor dz = New(3, 4, 7), sums = New(1, 2, 0, DType::kF64);
  backend_->SoftmaxCrossEntropy(ControlThatApplies(backend_.get()), z, Of({{2}, {0}, {kNan}}),
                                Of({{2}, {1}, {1}}), Of({{1}, {1}, {0}}), dz, sums);
  EXPECT_EQ(Values(dz), (std::vector<float>{.5, .5, -1.5, .5, -1, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_NEAR(Doubles(sums)[0], 2 * std::log(4.0) + 400, 1e-4);
  EXPECT_EQ(Doubles(sums)[1], 3);
}

TEST_P(LossConformance, SoftmaxCrossEntropyOfManyRows) {
  for (const int64_t rows : kRows) {
    const Tensor z = Random(rows, 5, 65, 9), y = New(rows, 1, 2);
    Tensor mask;
    for (int64_t i = 0; i < rows; ++i) {
      CopyIn(backend_.get(), std::vector<float>{ClassOf(i)}, y.Rows(i, 1));
    }
    if (rows > 0) mask = Of(Column(rows, MaskOf));
    const Tensor dz = New(rows, 5, 8), sums = New(1, 2, 0, DType::kF64);
    const Tensor want = NewReference(rows, 5), want_sums = NewReference(1, 2, DType::kF64);
    reference_->SoftmaxCrossEntropy(ControlThatApplies(reference_.get()), Reference(z),
                                    Reference(y), Tensor(), Reference(mask), want, want_sums);
    backend_->SoftmaxCrossEntropy(ControlThatApplies(backend_.get()), z, y, Tensor(), mask, dz,
                                  sums);
    ExpectNear(dz, want, 1e-6);
    ExpectSums(Doubles(sums), ReadDoubles(reference_.get(), want_sums), 1e-4);
  }
}

TEST_P(LossConformance, CandidateLossByHand) {
  // Two samples with the positives 7 and 8, and the candidates 8, 7 and 5. log Q is 0 except for
  // candidate 5 and the second positive.
  const float third = std::log(3.0f);
  CandidateLossArgs args;
  args.scores = Of({{0, 0, 9, third}, {200, -9, 0, 0}});
  args.items = New(1, 4, 0, DType::kU32);
  CopyIn(backend_.get(), std::vector<uint32_t>{0, 8, 7, 5}, args.items);
  args.positives = New(2, 1, 3, DType::kU32);
  CopyIn(backend_.get(), std::vector<uint32_t>{7, 8}, args.positives);
  args.log_q = Of({{9, 0, 0, third}});
  args.positive_log_q = Of({{0}, {100}});
  args.weights = Of({{2}, {1}});
  args.dscores = New(2, 4, 5);
  args.sums = New(1, 2, 0, DType::kF64);
  args.remove_hits = true;
  backend_->CandidateLoss(ControlThatApplies(backend_.get()), args);
  const float p = 2.0f / 3;
  const std::vector<float> softmax = {p - 2, p, 0, p, 0, 0, 0, 0};
  const std::vector<float> got = Values(args.dscores);
  for (size_t c = 0; c < softmax.size(); ++c) EXPECT_NEAR(got[c], softmax[c], 1e-6) << c;
  EXPECT_NEAR(Doubles(args.sums)[0], 2 * std::log(3.0), 1e-5);
  EXPECT_EQ(Doubles(args.sums)[1], 3);

  args.kind = CandidateLossKind::kLogistic;
  backend_->CandidateLoss(ControlThatApplies(backend_.get()), args);
  const std::vector<float> logistic = {-1, 1, 0, 1, 0, 0, .5, .25};
  const std::vector<float> decided = Values(args.dscores);
  for (size_t c = 0; c < logistic.size(); ++c) EXPECT_NEAR(decided[c], logistic[c], 1e-6) << c;
  EXPECT_NEAR(Doubles(args.sums)[0], 2 * 3 * std::log(2.0) + std::log(2.0) + std::log(4.0 / 3),
              1e-5);
}

TEST_P(LossConformance, CandidateLossOfManyRows) {
  for (const int64_t rows : kRows) {
    for (const bool diagonal : {false, true}) {
      for (const CandidateLossKind kind :
           {CandidateLossKind::kSoftmax, CandidateLossKind::kLogistic}) {
        const int64_t columns = diagonal ? rows : 9;
        std::vector<uint32_t> items(columns), positives(rows);
        for (size_t c = 0; c < items.size(); ++c) items[c] = static_cast<uint32_t>(c % 4);
        for (size_t i = 0; i < positives.size(); ++i) positives[i] = static_cast<uint32_t>(i % 4);
        CandidateLossArgs args;
        args.kind = kind;
        args.positives_on_diagonal = diagonal;
        args.remove_hits = rows != 1;
        args.scores = Random(rows, columns, 66);
        args.items = New(1, columns, 0, DType::kU32);
        CopyIn(backend_.get(), items, args.items);
        args.positives = New(rows, 1, 2, DType::kU32);
        CopyIn(backend_.get(), positives, args.positives);
        args.log_q = Random(1, columns, 67);
        args.positive_log_q = Random(rows, 1, 68);
        args.dscores = New(rows, columns, columns + 6);
        args.sums = New(1, 2, 0, DType::kF64);
        if (rows > 0) {
          args.weights = Of(Column(rows, WeightOf));
          args.mask = Of(Column(rows, MaskOf));
        }
        CandidateLossArgs want = args;
        for (Tensor* tensor : {&want.scores, &want.items, &want.positives, &want.log_q,
                               &want.positive_log_q, &want.weights, &want.mask}) {
          *tensor = Reference(*tensor);
        }
        want.dscores = NewReference(rows, columns);
        want.sums = NewReference(1, 2, DType::kF64);
        reference_->CandidateLoss(ControlThatApplies(reference_.get()), want);
        backend_->CandidateLoss(ControlThatApplies(backend_.get()), args);
        ExpectNear(args.dscores, want.dscores, 1e-6);
        ExpectSums(Doubles(args.sums), ReadDoubles(reference_.get(), want.sums), 1e-2);
      }
    }
  }
}

TEST_P(BackendConformance, BceByHand) {
  // exp(200) is infinite in f32, so a loss in the textbook form would be NaN.
  const Tensor z = Of({{0}, {2}, {-200}, {200}}), y = Of({{1}, {0}, {0}, {1}});
  const Tensor dz = New(4, 1), sums = New(1, 2, 0, DType::kF64);
  backend_->BceWithLogits(ControlThatApplies(backend_.get()), z, y, Of({{1}, {3}, {1}, {1}}),
                          Tensor(), dz, sums);
  const double at_two = 2 + std::log1p(std::exp(-2.0));
  EXPECT_NEAR(Doubles(sums)[0], std::log(2.0) + 3 * at_two, 1e-6);
  EXPECT_EQ(Doubles(sums)[1], 6);
  EXPECT_NEAR(Values(dz)[0], -0.5, 1e-7);
  EXPECT_NEAR(Values(dz)[1], 3 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(Values(dz)[2], 0);
  EXPECT_EQ(Values(dz)[3], 0);
}

TEST_P(BackendConformance, AMaskedSampleAddsNothingWhateverItsLabel) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor dz = New(2, 1), sums = New(1, 2, 0, DType::kF64);
  backend_->BceWithLogits(ControlThatApplies(backend_.get()), Of({{0}, {1}}), Of({{1}, {nan}}),
                          Tensor(), Of({{1}, {0}}), dz, sums);
  EXPECT_EQ(Values(dz)[1], 0);
  EXPECT_EQ(Doubles(sums)[1], 1);
  EXPECT_NEAR(Doubles(sums)[0], std::log(2.0), 1e-7);
}

}  // namespace satrap
