#include "nn_worker/trainer/testing/trainer_job.h"

#include "common/base/check.h"
#include "common/config/text_format.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"pb(
  data {
    numerics { name: "n0" }
    numerics { name: "n1" }
    features { name: "a" table: "wide" }
    features { name: "b" table: "wide" }
    features { name: "c" table: "narrow" pooling: MEAN transfer: ROWS }
    features { name: "d" table: "narrow" pooling: SUM transfer: POOLED }
    features { name: "e" table: "history" pooling: NONE max_length: 3 }
  }
  tables {
    name: "wide"
    id: 7
    segments { name: "linear" dim: 1 }
    segments { name: "embedding" dim: 4 }
  }
  tables {
    name: "narrow"
    id: 3
    segments { name: "embedding" dim: 4 }
  }
  tables {
    name: "history"
    id: 4
    segments { name: "item" dim: 3 }
  }
  model {
    layers {
      name: "clicked"
      inputs: "e.item"
      inputs: "e.length"
      sequence_pool {}
    }
    layers {
      name: "all"
      inputs: "numeric"
      inputs: "*.embedding"
      inputs: "clicked"
      concat {}
    }
    layers {
      name: "deep"
      inputs: "all"
      mlp {
        units: 8
        units: 4
        batch_norm {}
        dropout: .2
        output_units: 1
      }
    }
    layers {
      name: "fm"
      inputs: "*.embedding"
      fm {}
    }
    layers {
      name: "first"
      inputs: "*.linear"
      sum {}
    }
    layers {
      name: "logit"
      inputs: "deep"
      inputs: "fm"
      inputs: "first"
      add {}
    }
  }
  dense_optimizer {
    learning_rate: .05
    adagrad { initial_accumulator: .1 }
  }
)pb";

}  // namespace

JobConfig TrainerJob() {
  JobConfig job;
  const absl::Status status = ParseText(kJob, "job", &job);
  CHECK(status.ok()) << status.ToString();
  return job;
}

std::vector<FakeSample> TrainerBatch(uint64_t step) {
  SplitMix64 random(step + 1);
  std::vector<FakeSample> batch(kTrainerBatch);
  for (FakeSample& sample : batch) {
    sample.numeric = {static_cast<float>(random.NextDouble()),
                      static_cast<float>(random.NextDouble())};
    sample.ids = {{random.Below(20)}, {random.Below(20)}, {}, {}, {}};
    for (size_t feature : {2, 3, 4}) {
      for (uint64_t i = random.Below(feature == 4 ? 6 : 4); i > 0; --i) {
        sample.ids[feature].push_back(random.Below(10));
      }
    }
    sample.label = (sample.ids[0][0] + sample.ids[1][0]) % 3 == 0 ? 1 : 0;
    sample.weight = .5f * static_cast<float>(random.Below(4));
    sample.masked = random.Below(10) == 0;
  }
  return batch;
}

}  // namespace satrap
