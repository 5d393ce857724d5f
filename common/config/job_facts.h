// Positions, sizes and names that follow from a job and that several roles need. They are not in
// job_config.h, because the code there, which loads and checks jobs, links librdkafka.
//
// Thread-safe: the functions depend only on their arguments. The references are into the arguments.

#ifndef SATRAP_COMMON_CONFIG_JOB_FACTS_H_
#define SATRAP_COMMON_CONFIG_JOB_FACTS_H_

#include <string>

#include "proto/job.pb.h"

namespace satrap {

// Index of the table that a feature reads. REQUIRES: a validated job
int TableIndexOf(const FeatureConfig& feature, const JobConfig& job);
// Number of values in a row: the sum of its segments' dims.
int RowValues(const TableConfig& table);
// The column that a feature or a numeric reads: its `column`, or its name.
const std::string& ColumnOf(const FeatureConfig& feature);
const std::string& ColumnOf(const NumericConfig& numeric);
// The id space of a feature: its `id_space`, or its name.
const std::string& IdSpaceOf(const FeatureConfig& feature);
// Whether quotes enclose fields: the format's `quotes`. If it is not set, they do unless the
// separator is a tab.
bool QuotesOf(const CsvFormat& csv);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_JOB_FACTS_H_
