// Test support: small tables with semantics GLOBAL.

#ifndef SATRAP_EMBEDDING_PS_TABLE_TESTING_GLOBAL_TESTING_H_
#define SATRAP_EMBEDDING_PS_TABLE_TESTING_GLOBAL_TESTING_H_

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "embedding_ps/table/embedding_table.h"
#include "embedding_ps/table/step_of_table.h"
#include "google/protobuf/text_format.h"

namespace satrap {

inline constexpr int kDim = 3;
inline constexpr int kRows = 40;

struct Case {
  std::string name;
  std::string optimizer;  // SparseOptimizerConfig
  // Whether all rows are created at the beginning. A rule that moves values without gradients needs
  // this: the reference would move a row that does not exist in the table yet.
  bool all_exist = false;
  bool constant_rate = false;
  std::string segment = {};  // SegmentConfig
};

inline std::ostream& operator<<(std::ostream& out, const Case& tested) {
  return out << tested.name;
}

inline TableConfig ConfigOf(const Case& tested) {
  TableConfig config;
  config.set_name("t");
  config.set_semantics(TableConfig::GLOBAL);
  SegmentConfig* segment = config.add_segments();
  CHECK(google::protobuf::TextFormat::MergeFromString(tested.segment, segment));
  segment->set_name("embedding");
  segment->set_dim(kDim);
  segment->mutable_initializer()->mutable_uniform()->set_low(-0.5f);
  segment->mutable_initializer()->mutable_uniform()->set_high(0.5f);
  CHECK(google::protobuf::TextFormat::MergeFromString(tested.optimizer,
                                                      segment->mutable_optimizer()));
  segment->mutable_optimizer()->set_learning_rate(0.02f);
  return config;
}

inline std::unique_ptr<EmbeddingTable> NewTable(const TableConfig& config, int shards = 4) {
  EmbeddingTable::Options options;
  options.shards = shards;
  auto table = EmbeddingTable::Create(config, options);
  CHECK_OK(table.status());
  return *std::move(table);
}

inline std::vector<uint64_t> AllKeys() {
  std::vector<uint64_t> keys;
  for (uint64_t id = 0; id < kRows; ++id) keys.push_back(Mix64(id));
  return keys;
}

inline std::vector<float> ValuesOf(const EmbeddingTable& table, const std::vector<uint64_t>& keys) {
  std::vector<float> values(keys.size() * table.layout().num_values());
  std::vector<uint8_t> presence((keys.size() + 7) / 8);
  table.Lookup(keys, AbsentRows::kInitialValues, absl::MakeSpan(values), absl::MakeSpan(presence));
  return values;
}

// Takes the step with the idle rows, after the Updates of the step.
inline void Sweep(EmbeddingTable* table, const StepContext& context) {
  StepOfTable step(table, context);
  if (!step.has_idle_rows()) return;
  for (int shard = 0; shard < table->num_shards(); ++shard) step.FinishIdleRows(shard);
}

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TABLE_TESTING_GLOBAL_TESTING_H_
