// Embedding tables in the memory of a test. FakeTables also does the work of an embedding worker:
// it makes the answer to NextBatch from samples, and applies PushGradients as one Adagrad step per
// key.

#ifndef SATRAP_NN_WORKER_TRAINER_TESTING_FAKE_TABLES_H_
#define SATRAP_NN_WORKER_TRAINER_TESTING_FAKE_TABLES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "nn_worker/rank/part_messages.h"
#include "nn_worker/trainer/memory_plan/part_layout.h"
#include "proto/job.pb.h"

namespace satrap {

struct FakeSample {
  std::vector<float> numeric;
  std::vector<std::vector<uint64_t>> ids;  // by feature
  float label = 0;
  float weight = 1;
  bool masked = false;
  int64_t time = 0;
  std::vector<float> labels{};  // in place of `label` if the layout has several; NaN: missing
  uint64_t group = 0;
};

class FakeTables {
 public:
  static constexpr float kInitialAccumulator = .1f;

  explicit FakeTables(const PartLayout* layout)
      : layout_(*layout), tables_(layout->tables.size()) {}

  // Makes a part of `samples`, the first of which is sample `first_sample` of its batch. Features
  // for which all samples have exactly one id are sent without offsets.
  PartInput MakePart(const std::vector<FakeSample>& samples, uint64_t first_sample,
                     WireDtype dtype);

  // For jobs with candidates: the items that MakePart puts into a part, and log Q of each item if
  // the layout has it.
  std::vector<uint64_t> candidates;
  static float LogQOf(uint64_t item) { return -1 - .25f * static_cast<float>(item % 8); }
  std::vector<float> ValuesOf(size_t table, uint64_t key) { return RowOf(table, key).values; }

  // Adds the gradients of `part` to those of the step. REQUIRES: MakePart made `part`
  void Push(const PartInput& part, const PartGradients& gradients);
  // The sum of the squares of the step's gradients, each divided by `normalizer`.
  double Squares(float normalizer) const;
  // Ends the step: applies Adagrad to each row that was pushed. Its gradient is the sum of the
  // row's gradients, divided by `normalizer` and multiplied by `clip_factor`.
  void Apply(float normalizer, float clip_factor = 1);

  // All values, by table and key.
  std::vector<float> Values() const;
  // The accumulators of Adagrad, in the same order.
  std::vector<float> Accumulators() const;

 private:
  struct Row {
    std::vector<float> values;
    std::vector<float> accumulators;
    std::vector<double> gradient;
    bool touched = false;
  };
  using Table = std::map<uint64_t, Row>;

  Row& RowOf(size_t table, uint64_t key);
  // Row i of table t in the part belongs to key keys[t][i].
  struct Plan {
    std::vector<std::vector<uint64_t>> keys;
    std::vector<FakeSample> samples;
  };

  const PartLayout& layout_;
  std::vector<Table> tables_;
  std::map<uint64_t, Plan> plans_;  // by handle
  uint64_t next_handle_ = 1;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_TESTING_FAKE_TABLES_H_
