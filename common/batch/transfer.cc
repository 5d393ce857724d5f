#include "common/batch/transfer.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/config/job_facts.h"
#include "common/config/record_schema.h"

namespace satrap {

namespace {

constexpr double kExpectedUnique = .5;  // unique rows per id

// The declared column that the feature reads, or null.
const ColumnConfig* DeclaredColumnOf(const FeatureConfig& feature, const DataConfig& data) {
  for (const auto* columns : {&data.csv().columns(), &data.record().columns()}) {
    for (const ColumnConfig& column : *columns) {
      if (column.name() == ColumnOf(feature)) return &column;
    }
  }
  return nullptr;
}

bool PooledIsSmaller(const FeatureConfig& feature, const JobConfig& job) {
  const double row_bytes = (job.embedding_worker().wire_dtype() == F32 ? 4.0 : 2.0) *
                           RowValues(job.tables(TableIndexOf(feature, job)));
  const double samples = std::max(
      1.0, static_cast<double>(job.global_batch_size()) / std::max(1, job.nn_worker().replicas()));
  double unique_rows = samples * kExpectedIds * kExpectedUnique;
  const ColumnConfig* column = DeclaredColumnOf(feature, job.data());
  if (column != nullptr && column->vocabulary_size() > 0) {
    unique_rows = std::min(unique_rows, static_cast<double>(column->vocabulary_size()));
  }
  return samples * row_bytes < unique_rows * row_bytes + samples * kExpectedIds * 4;
}

}  // namespace

bool IsMultiValued(const FeatureConfig& feature, const DataConfig& data) {
  if (feature.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) return false;
  if (feature.cross_columns_size() > 0) return false;
  return SchemaOf(data).IndexOfIdList(ColumnOf(feature)) >= 0;
}

FeatureConfig::Transfer TransferOf(const FeatureConfig& feature, const JobConfig& job) {
  if (feature.pooling() == FeatureConfig::NONE) return FeatureConfig::ROWS;
  if (feature.transfer() != FeatureConfig::AUTO) return feature.transfer();
  if (!IsMultiValued(feature, job.data())) return FeatureConfig::ROWS;
  return PooledIsSmaller(feature, job) ? FeatureConfig::POOLED : FeatureConfig::ROWS;
}

}  // namespace satrap
