#include "common/config/job_facts.h"

#include "common/base/check.h"

namespace satrap {

int TableIndexOf(const FeatureConfig& feature, const JobConfig& job) {
  for (int i = 0; i < job.tables_size(); ++i) {
    if (job.tables(i).name() == feature.table()) return i;
  }
  CHECK(false) << "feature " << feature.name() << " names no table";
  return -1;
}

int RowValues(const TableConfig& table) {
  int values = 0;
  for (const SegmentConfig& segment : table.segments()) values += segment.dim();
  return values;
}

const std::string& ColumnOf(const FeatureConfig& feature) {
  return feature.has_column() ? feature.column() : feature.name();
}

const std::string& ColumnOf(const NumericConfig& numeric) {
  return numeric.has_column() ? numeric.column() : numeric.name();
}

const std::string& IdSpaceOf(const FeatureConfig& feature) {
  return feature.has_id_space() ? feature.id_space() : feature.name();
}

bool QuotesOf(const CsvFormat& csv) {
  return csv.has_quotes() ? csv.quotes() : csv.separator() != "\t";
}

}  // namespace satrap
