// Trains DLRM's own example (Naumov et al. 2019), three mini-batches of two samples, and compares
// the losses and weights with those that its README prints, to five digits. This covers a task with
// MSE, embedding gradients of pooled ids, and the sum over ranks.

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/graph/network.h"

namespace satrap {
namespace {

using Floats = std::vector<float>;

constexpr double kTolerance = 2e-5;
constexpr float kLearningRate = 0.01f;
constexpr int64_t kDim = 2;

// The vector d is computed from the numerics. Each other vector is the sum of the embeddings of one
// table's ids.
constexpr char kAround[] = R"(
  layers { name: "d" inputs: "numeric" mlp { units: 3 units: 2 } }
  layers { name: "top" inputs: "interaction" mlp { units: 4 units: 2 } }
  layers { name: "p" inputs: "top" linear { units: 1 activation: SIGMOID } }
  tasks { name: "click" output: "p" loss: MSE })";

// The dot product of each pair of vectors, in the order of the rows below the diagonal of the
// matrix of all dot products. An `fm` layer of two vectors computes their dot product.
constexpr char kInteraction[] = R"(
  layers { name: "1x0" inputs: "t0.e" inputs: "d" fm {} }
  layers { name: "2x0" inputs: "t1.e" inputs: "d" fm {} }
  layers { name: "2x1" inputs: "t1.e" inputs: "t0.e" fm {} }
  layers { name: "3x0" inputs: "t2.e" inputs: "d" fm {} }
  layers { name: "3x1" inputs: "t2.e" inputs: "t0.e" fm {} }
  layers { name: "3x2" inputs: "t2.e" inputs: "t1.e" fm {} }
  layers { name: "interaction" inputs: [ "d", "1x0", "2x0", "2x1", "3x0", "3x1", "3x2" ] concat {} })";

constexpr char kInteractionLayer[] = R"(
  layers { name: "interaction" inputs: [ "d", "t0.e", "t1.e", "t2.e" ] dot_interaction {} })";

struct Sample {
  Floats numeric;
  std::vector<std::vector<int>> ids;  // by table
  float target;
};

const std::vector<std::vector<Sample>>& Batches() {
  static const auto* const batches = new std::vector<std::vector<Sample>>{
      {{{.69647f, .28614f, .22685f, .55131f}, {{1}, {0}, {1}}, .55679f},
       {{.71947f, .42311f, .98076f, .68483f}, {{0, 1}, {1}, {0}}, .15896f}},
      {{{.36179f, .22826f, .29371f, .63098f}, {{1}, {1}, {1}}, .15307f},
       {{.0921f, .4337f, .43086f, .49369f}, {{0, 2, 3}, {1, 2}, {1}}, .69553f}},
      {{{.60306f, .54507f, .34276f, .30412f}, {{2}, {1}, {1}}, .31877f},
       {{.41702f, .6813f, .87546f, .51042f}, {{0, 1, 2}, {2}, {1}}, .69197f}}};
  return *batches;
}

// Rows of table t begin at kFirstRow[t].
constexpr int kFirstRow[] = {0, 4, 7};
const Floats kRows = {.05438f,  -.11105f, .42513f,  .34167f,  -.1426f,  -.45641f,
                      -.19523f, -.10181f, .23667f,  .57199f,  -.16638f, .30316f,
                      .10759f,  .22136f,  -.49338f, -.14301f, -.36649f, -.22139f};

// Weights in the layout in which the example prints them, (out, in).
struct Dense {
  std::string name;
  Floats weight, bias;
};
const std::vector<Dense>& InitialDense() {
  static const auto* const dense = new std::vector<Dense>{
      {"d/linear_0",
       {.51313f, .66662f, .10591f, .13089f, .32198f, .66156f, .84651f, .55326f, .85445f, .38484f,
        .31679f, .35426f},
       {.17108f, .82911f, .33867f}},
      {"d/linear_1", {.55237f, .57855f, .52153f, .00269f, .98835f, .90534f}, {.20764f, .29249f}},
      {"top/linear_0",
       {.52001f, .90191f, .98363f, .25754f, .56436f, .80697f, .39437f, .73107f,
        .16107f, .6007f,  .86586f, .98352f, .07937f, .42835f, .20454f, .45064f,
        .54776f, .09333f, .29686f, .92758f, .569f,   .45741f, .75353f, .74186f,
        .04858f, .7087f,  .83924f, .16594f, .781f,   .28654f, .30647f, .66526f},
       {.11139f, .66487f, .88786f, .69631f}},
      {"top/linear_1",
       {.44033f, .43821f, .7651f, .56564f, .0849f, .58267f, .81484f, .33707f},
       {.92758f, .75072f}},
      {"p", {.57406f, .75164f}, {.07915f}}};
  return *dense;
}

// One rank with its own copy of the rows. The copies of all ranks are the same.
class Rank {
 public:
  Rank(const std::string& interaction, std::unique_ptr<Collective> collective)
      : backend_(NewCpuBackend(1)), collective_(std::move(collective)), rows_(kRows) {
    NetworkOptions options;
    CHECK(google::protobuf::TextFormat::ParseFromString(kAround + interaction, &options.model));
    options.inputs.numeric_width = 4;
    options.inputs.segments = {{"t0", "e", kDim, 0}, {"t1", "e", kDim, 0}, {"t2", "e", kDim, 0}};
    options.optimizer.set_learning_rate(kLearningRate);
    options.optimizer.mutable_sgd();
    options.max_samples = 2;
    options.backend = backend_.get();
    options.collective = collective_.get();
    auto network = Network::Create(options);
    CHECK_OK(network.status());
    network_ = std::move(*network);
    SetInitialDense();
  }

  // Trains samples [begin, end) of the batch; returns the mean loss over all ranks.
  double Train(int64_t step, const std::vector<Sample>& batch, size_t begin, size_t end) {
    Floats labels;
    for (size_t i = begin; i < end; ++i) {
      Write(0, i - begin, batch[i].numeric);
      for (int t = 0; t < 3; ++t) {
        Floats sum(kDim, 0.0f);
        for (const int id : batch[i].ids[t]) {
          for (int64_t c = 0; c < kDim; ++c) sum[c] += rows_[(kFirstRow[t] + id) * kDim + c];
        }
        Write(1 + t, i - begin, sum);
      }
      labels.push_back(batch[i].target);
    }
    CHECK_OK(
        network_->Forward(static_cast<int64_t>(labels.size()), PassContext::Training(step, 0)));
    network_->Loss(labels, {}, {});
    CHECK_OK(network_->Backward());
    Floats gradients(rows_.size(), 0.0f);
    for (size_t i = begin; i < end; ++i) {
      for (int t = 0; t < 3; ++t) {
        const Floats of_sum = ReadFloats(backend_.get(), network_->input_gradient(1 + t).Rows(
                                                             static_cast<int64_t>(i - begin), 1));
        for (const int id : batch[i].ids[t]) {
          for (int64_t c = 0; c < kDim; ++c) {
            gradients[(kFirstRow[t] + id) * kDim + c] += of_sum[c];
          }
        }
      }
    }
    CHECK_OK(collective_->AllReduceSum(absl::MakeSpan(gradients)));
    const LossSums loss = network_->ReadLoss();
    float sums[] = {static_cast<float>(loss.loss), static_cast<float>(loss.weight)};
    CHECK_OK(network_->StartReduce());
    CHECK_OK(network_->FinishReduce());
    CHECK_OK(collective_->AllReduceSum(absl::MakeSpan(sums)));
    CHECK_OK(network_->Step({step, 2}, {2, sums[1], 0}));
    for (size_t i = 0; i < rows_.size(); ++i) rows_[i] -= kLearningRate * gradients[i] / sums[1];
    return sums[0] / sums[1];
  }

  const Floats& rows() const { return rows_; }
  Floats Parameter(const std::string& name) { return network_->Parameter(name)->values; }

 private:
  void Write(int input, size_t sample, const Floats& values) {
    CopyIn(backend_.get(), values,
           network_->input_view(input).Rows(static_cast<int64_t>(sample), 1));
  }

  void SetInitialDense() {
    std::vector<NamedArray> arrays;
    for (const Dense& dense : InitialDense()) {
      const auto out = static_cast<int64_t>(dense.bias.size());
      const auto in = static_cast<int64_t>(dense.weight.size()) / out;
      NamedArray weight{dense.name + ".weight", in, out, Floats(dense.weight.size())};
      for (int64_t o = 0; o < out; ++o) {
        for (int64_t i = 0; i < in; ++i) weight.values[i * out + o] = dense.weight[o * in + i];
      }
      arrays.push_back(std::move(weight));
      arrays.push_back({dense.name + ".bias", 1, out, dense.bias});
    }
    CHECK_OK(network_->Load(EncodeArrays(arrays), Network::LoadScope::kAll));
  }

  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Collective> collective_;
  std::unique_ptr<Network> network_;
  Floats rows_;
};

void ExpectGoldenRun(const std::string& interaction, int ranks) {
  auto collectives = NewLocalCollectives(ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      Rank rank(interaction, std::move(collectives[r]));
      const size_t share = 2 / ranks;
      const double losses[] = {.451893, .402002, .275460};
      for (int64_t step = 0; step < 3; ++step) {
        EXPECT_NEAR(rank.Train(step, Batches()[step], r * share, (r + 1) * share), losses[step],
                    kTolerance)
            << "step " << step << " of rank " << r;
      }
      EXPECT_NEAR(rank.rows()[0], .0543, kTolerance * 3);
      EXPECT_NEAR(rank.rows()[1], -.1112, kTolerance * 3);
      EXPECT_NEAR(rank.Parameter("p.weight")[0], .57379, kTolerance);
      EXPECT_NEAR(rank.Parameter("p.weight")[1], .7514, kTolerance);
      EXPECT_NEAR(rank.Parameter("p.bias")[0], .07908, kTolerance);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DlrmGoldenTest, OneRankWithTwoSamples) { ExpectGoldenRun(kInteraction, 1); }

TEST(DlrmGoldenTest, TwoRanksWithOneEach) { ExpectGoldenRun(kInteraction, 2); }

TEST(DlrmGoldenTest, TheLayerOfAllPairsIsTheSame) {
  if (LayerConfig::descriptor()->FindFieldByName("dot_interaction") == nullptr) {
    GTEST_SKIP() << "there is no such layer";
  }
  for (const int ranks : {1, 2}) ExpectGoldenRun(kInteractionLayer, ranks);
}

}  // namespace
}  // namespace satrap
