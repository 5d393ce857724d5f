#include "nn_worker/trainer/embedding_exchange.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/config/text_format.h"
#include "common/numeric/half.h"
#include "common/numeric/random.h"
#include "common/rpc/payload.h"
#include "gtest/gtest.h"
#include "nn_worker/backend/cpu/cpu_backend.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/backend/testing/host_device_backend.h"
#include "nn_worker/collective/local_collective.h"
#include "nn_worker/trainer/testing/fake_tables.h"

namespace satrap {
namespace {

// There are four features: one with a single value, one that is pooled here, one that is pooled at
// the worker, and a sequence.
constexpr char kJob[] = R"pb(
  data {
    numerics { name: "n" }
    features { name: "a" table: "t" }
    features { name: "b" table: "t" pooling: MEAN transfer: ROWS }
    features { name: "c" table: "t" pooling: SUM transfer: POOLED }
    features { name: "d" table: "t" pooling: NONE max_length: 3 }
  }
  tables {
    name: "t"
    id: 1
    segments { name: "x" dim: 11 }
  }
  model {
    layers {
      name: "pool"
      inputs: "d.x"
      inputs: "d.length"
      sequence_pool { kind: MAX }
    }
    layers {
      name: "logit"
      inputs: "numeric"
      inputs: "a.x"
      inputs: "b.x"
      inputs: "c.x"
      inputs: "pool"
      mlp { units: 3 output_units: 1 }
    }
  }
  dense_optimizer { sgd {} }
)pb";

// Enough for several blocks, of samples and of values.
constexpr size_t kSamples = 3000;

std::vector<FakeSample> Samples() {
  SplitMix64 random(1);
  std::vector<FakeSample> samples(kSamples);
  for (FakeSample& sample : samples) {
    sample.numeric = {static_cast<float>(random.NextDouble())};
    sample.ids = {{random.Below(9000)}, {}, {}, {}};
    for (size_t feature : {1, 2, 3}) {
      for (uint64_t i = random.Below(5); i > 0; --i) {
        sample.ids[feature].push_back(random.Below(9000));
      }
    }
    sample.label = random.Below(2) == 0 ? 0 : 1;
  }
  return samples;
}

class ExchangeOn {
 public:
  explicit ExchangeOn(int threads, std::unique_ptr<Backend> backend = nullptr)
      : pool_(threads), backend_(backend != nullptr ? std::move(backend) : NewCpuBackend(&pool_)) {
    CHECK_OK(ParseText(kJob, "job", &job_));
    layout_ = MakePartLayout(job_);
    tables_ = std::make_unique<FakeTables>(&layout_);
    NetworkOptions options;
    options.model = job_.model();
    options.inputs = layout_.inputs;
    options.optimizer = job_.dense_optimizer();
    options.max_samples = kSamples;
    options.backend = backend_.get();
    options.collective = collectives_[0].get();
    auto network = Network::Create(options);
    CHECK_OK(network.status());
    network_ = *std::move(network);
    exchange_ = std::make_unique<EmbeddingExchange>(&layout_, network_.get(), &pool_);
  }

  // The network's inputs, sample by sample.
  std::vector<float> Write(const std::vector<FakeSample>& samples, WireDtype dtype) {
    part_ = tables_->MakePart(samples, 0, dtype);
    auto view = ReadPart(layout_, kSamples, part_);
    CHECK_OK(view.status());
    view_ = *std::move(view);
    buffer_ = 1 - buffer_;
    CHECK_OK(exchange_->Prepare(view_, buffer_, &pool_));
    exchange_->WriteInputs(buffer_);
    std::vector<float> values;
    std::vector<std::vector<float>> inputs;
    for (int input = 0; input < network_->num_inputs(); ++input) {
      const Tensor view = network_->input_view(input);
      inputs.push_back(
          ReadFloats(backend_.get(), view.FirstRows(static_cast<int64_t>(samples.size()))));
    }
    for (size_t s = 0; s < samples.size(); ++s) {
      for (const std::vector<float>& input : inputs) {
        const size_t width = input.size() / samples.size();
        values.insert(values.end(), &input[s * width], &input[s * width] + width);
      }
    }
    return values;
  }

  // Prepares another part in the other buffer, as a trainer does while the current one is trained.
  void PrepareNext(const std::vector<FakeSample>& samples, WireDtype dtype) {
    next_ = tables_->MakePart(samples, 0, dtype);
    const auto view = ReadPart(layout_, kSamples, next_);
    CHECK_OK(view.status());
    CHECK_OK(exchange_->Prepare(*view, 1 - buffer_, /*pool=*/nullptr));
  }
  // Continues with the part that PrepareNext prepared.
  void WriteNext() {
    part_ = next_;
    view_ = *ReadPart(layout_, kSamples, part_);
    buffer_ = 1 - buffer_;
    exchange_->WriteInputs(buffer_);
  }

  PartGradients Gradients(bool* finite) {
    CHECK_OK(network_->Forward(static_cast<int64_t>(view_.samples), PassContext::Training(0, 0)));
    network_->Loss(view_.labels, {}, {});
    CHECK_OK(network_->Backward());
    auto gradients = exchange_->ReadGradients(buffer_, finite);
    CHECK_OK(gradients.status());
    return *std::move(gradients);
  }

  Network* network() { return network_.get(); }
  Backend* backend() { return backend_.get(); }
  const PartLayout& layout() const { return layout_; }

 private:
  ForkJoinPool pool_;
  JobConfig job_;
  PartLayout layout_;
  std::unique_ptr<FakeTables> tables_;
  const std::unique_ptr<Backend> backend_;
  const std::vector<std::unique_ptr<Collective>> collectives_ = NewLocalCollectives(1);
  std::unique_ptr<Network> network_;
  std::unique_ptr<EmbeddingExchange> exchange_;
  PartInput part_, next_;
  PartView view_;
  int buffer_ = 0;
};

TEST(EmbeddingExchangeTest, ASampleIsWrittenAsIfItWereAlone) {
  for (const WireDtype dtype : {F32, BF16}) {
    const std::vector<FakeSample> samples = Samples();
    ExchangeOn whole(3), alone(1);
    const std::vector<float> values = whole.Write(samples, dtype);
    const size_t width = values.size() / kSamples;
    for (const size_t s : {0, 1, 511, 512, 513, 1500, 2999}) {
      const std::vector<float> of_sample(values.begin() + s * width,
                                         values.begin() + (s + 1) * width);
      EXPECT_EQ(alone.Write({samples[s]}, dtype), of_sample) << "sample " << s;
    }
  }
}

TEST(EmbeddingExchangeTest, ASequenceHasItsLength) {
  std::vector<FakeSample> samples = Samples();
  samples.resize(4);
  samples[0].ids[3] = {};
  samples[1].ids[3] = {5};
  samples[2].ids[3] = {5, 6, 7};
  samples[3].ids[3] = {5, 6, 7, 8};
  ExchangeOn exchange(1);
  exchange.Write(samples, F32);
  const Tensor lengths = exchange.network()->input_view(exchange.layout().features[3].length_input);
  EXPECT_EQ(ReadFloats(exchange.backend(), lengths.FirstRows(4)),
            (std::vector<float>{0, 1, 3, 3}));  // at most max_length
}

TEST(EmbeddingExchangeTest, GivesTheSameBitsForAnyNumberOfThreads) {
  for (const WireDtype dtype : {F32, F16}) {
    ExchangeOn one(1), three(3);
    EXPECT_EQ(one.Write(Samples(), dtype), three.Write(Samples(), dtype));
    bool finite = true;
    const PartGradients a = one.Gradients(&finite), b = three.Gradients(&finite);
    EXPECT_TRUE(finite);
    EXPECT_EQ(a.header.SerializeAsString(), b.header.SerializeAsString());
    ASSERT_EQ(a.payload.size(), b.payload.size());
    EXPECT_TRUE(
        std::equal(a.payload.data(), a.payload.data() + a.payload.size(), b.payload.data()));
  }
}

// What a backend computes for a part: the network's inputs, and the gradients for the answer.
struct Exchanged {
  std::vector<float> inputs, gradients;
};
Exchanged ExchangeAll(WireDtype dtype, std::unique_ptr<Backend> backend) {
  ExchangeOn exchange(2, std::move(backend));
  Exchanged all;
  // Exchanges a small part first, so that the memory on the backend has to grow.
  std::vector<FakeSample> few = Samples();
  few.resize(5);
  for (const std::vector<FakeSample>& samples : {few, Samples()}) {
    const std::vector<float> inputs = exchange.Write(samples, dtype);
    all.inputs.insert(all.inputs.end(), inputs.begin(), inputs.end());
    bool finite = true;
    const PartGradients gradients = exchange.Gradients(&finite);
    EXPECT_TRUE(finite);
    const auto decode = [&](const Section& section) {
      const size_t count = section.size_bytes() / rpc::WireValueBytes(dtype);
      const auto view = rpc::WireView(gradients.payload, section, dtype, count, "gradients");
      CHECK_OK(view.status());
      all.gradients.resize(all.gradients.size() + count);
      rpc::DecodeWire(*view, absl::MakeSpan(all.gradients).last(count));
    };
    for (const TableGradients& table : gradients.header.tables()) decode(table.gradients());
    for (const FeatureGradients& f : gradients.header.features()) decode(f.gradients());
  }
  return all;
}

// How much two values of a gradient may differ after rounding to this wire dtype.
double Rounding(WireDtype dtype) { return dtype == F32 ? 1e-4 : dtype == F16 ? 2e-3 : 1e-2; }

// A device scatters row by row, and the host cannot reach its memory.
TEST(EmbeddingExchangeTest, ADeviceGivesTheSumsOfTheCpuWhateverItsOrder) {
  for (const WireDtype dtype : {F32, BF16, F16}) {
    const Exchanged cpu = ExchangeAll(dtype, NewCpuBackend(1));
    const Exchanged device = ExchangeAll(dtype, NewHostDeviceBackend({}));
    ASSERT_EQ(device.inputs.size(), cpu.inputs.size());
    for (size_t i = 0; i < cpu.inputs.size(); ++i) {
      ASSERT_NEAR(device.inputs[i], cpu.inputs[i], 1e-5) << i;
    }
    ASSERT_EQ(device.gradients.size(), cpu.gradients.size());
    for (size_t i = 0; i < cpu.gradients.size(); ++i) {
      ASSERT_NEAR(device.gradients[i], cpu.gradients[i],
                  Rounding(dtype) * (1 + std::abs(cpu.gradients[i])))
          << i;
    }
    const Exchanged reversed =
        ExchangeAll(dtype, NewHostDeviceBackend({{host::ExecutionOrder::kReverse}}));
    EXPECT_EQ(reversed.inputs, device.inputs);
    EXPECT_EQ(reversed.gradients, device.gradients);
  }
}

TEST(EmbeddingExchangeTest, APartIsPreparedWhileAnotherIsInWork) {
  std::vector<FakeSample> few = Samples();
  few.resize(5);
  const auto bytes = [](const PartGradients& gradients) {
    return std::vector<uint8_t>(gradients.payload.data(),
                                gradients.payload.data() + gradients.payload.size());
  };
  for (const WireDtype dtype : {F32, BF16}) {
    for (const bool on_device : {false, true}) {
      const auto backend = [on_device] {
        return on_device ? NewHostDeviceBackend({}) : NewCpuBackend(1);
      };
      bool finite = true;
      ExchangeOn in_turn(1, backend()), ahead(1, backend());
      in_turn.Write(few, dtype);
      const std::vector<uint8_t> first = bytes(in_turn.Gradients(&finite));
      in_turn.Write(Samples(), dtype);
      const std::vector<uint8_t> second = bytes(in_turn.Gradients(&finite));
      ahead.Write(few, dtype);
      ahead.PrepareNext(Samples(), dtype);
      EXPECT_EQ(bytes(ahead.Gradients(&finite)), first);
      ahead.WriteNext();
      EXPECT_EQ(bytes(ahead.Gradients(&finite)), second);
    }
  }
}

TEST(EmbeddingExchangeTest, OneBrokenGradientInAnyBlockIsFound) {
  for (const size_t broken : {0, 1700, 2999}) {
    std::vector<FakeSample> samples = Samples();
    samples[broken].label = std::numeric_limits<float>::quiet_NaN();
    ExchangeOn exchange(2);
    exchange.Write(samples, F32);
    bool finite = true;
    exchange.Gradients(&finite);
    EXPECT_FALSE(finite) << broken;
  }
}

// The gradients of one id that every sample has. All samples have the label `label`.
struct SumOfOneId {
  float largest = 0;  // absolute value sent; NaN if one was sent
  bool finite = true;
  bool large = false;
  uint64_t values = 0;
  rpc::WireLosses losses;
};
SumOfOneId PushOneId(WireDtype dtype, float label, float weight = 1) {
  std::vector<FakeSample> samples = Samples();
  for (FakeSample& sample : samples) {
    sample.ids = {{1}, {}, {}, {}};
    sample.label = label;
    sample.weight = weight;
  }
  ExchangeOn exchange(2);
  exchange.Write(samples, dtype);
  SumOfOneId sum;
  const PartGradients gradients = exchange.Gradients(&sum.finite);
  sum.large = gradients.large;
  sum.values = gradients.values;
  sum.losses = gradients.losses;
  const Section& section = gradients.header.tables(0).gradients();
  const size_t count = section.size_bytes() / rpc::WireValueBytes(dtype);
  const auto view = rpc::WireView(gradients.payload, section, dtype, count, "gradients");
  EXPECT_TRUE(view.ok()) << view.status();
  std::vector<float> values(count);
  rpc::DecodeWire(*view, absl::MakeSpan(values));
  for (const float value : values) {
    if (!(std::abs(value) <= sum.largest)) sum.largest = std::abs(value);
  }
  return sum;
}

TEST(EmbeddingExchangeTest, SumsOfAnySizeFitIntoF16) {
  // The gradient of a sample's logit z is sigmoid(z) - label, about 1e4. So the sums are some 1e7
  // times the sample weight. With a sample weight of 1e-12 the sums are far below the smallest F16.
  for (const float weight : {1.0f, 1e-12f}) {
    const SumOfOneId f32 = PushOneId(F32, 1e4f, weight);
    for (const WireDtype dtype : {F16, BF16}) {
      const SumOfOneId sum = PushOneId(dtype, 1e4f, weight);
      EXPECT_TRUE(sum.finite);
      EXPECT_NEAR(sum.largest / f32.largest, 1, dtype == F16 ? .002 : .02) << weight;
      EXPECT_GT(sum.values, 0u);
      EXPECT_EQ(sum.losses.saturated, 0u);
      EXPECT_EQ(sum.losses.underflowed, 0u);
    }
  }
}

TEST(EmbeddingExchangeTest, ASumBeyondTheLimitIsLargeAndSentAsItIs) {
  for (const WireDtype dtype : {F32, F16, BF16}) {
    EXPECT_FALSE(PushOneId(dtype, 1e4f).large);
    const SumOfOneId sum = PushOneId(dtype, 1e16f);
    EXPECT_TRUE(sum.large);
    EXPECT_TRUE(sum.finite);
    EXPECT_GT(sum.largest, 1e15f);
  }
}

TEST(EmbeddingExchangeTest, AnInfiniteSumIsNotFiniteWhateverTheWire) {
  for (const WireDtype dtype : {F16, BF16}) {
    EXPECT_FALSE(PushOneId(dtype, std::numeric_limits<float>::infinity()).finite);
    EXPECT_FALSE(PushOneId(dtype, std::numeric_limits<float>::quiet_NaN()).finite);
  }
  EXPECT_FALSE(PushOneId(F16, std::numeric_limits<float>::max()).finite) << "the sum overflows f32";
}

}  // namespace
}  // namespace satrap
