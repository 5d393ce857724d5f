// Which tables, initializers and optimizers are valid: the ranges of their fields
// (setting_ranges.h), and the rules between fields, which are defined only here. The validator
// checks whole jobs with these functions, and the factories check their arguments with them, so the
// two never disagree.
//
// Each function adds a problem for every field out of range and for every rule that is broken, and
// checks the submessages that are set. `prefix` begins the path of each field: "" or
// "tables[0].segments[1].optimizer.", for example.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_RANGES_H_
#define SATRAP_COMMON_CONFIG_RANGES_H_

#include <string>

#include "common/base/problems.h"
#include "proto/model.pb.h"
#include "proto/table.pb.h"

namespace satrap {

inline constexpr int kMaxShards = 1024;  // of a table in one embedding PS

// Checks the table with its segments, their initializers and their optimizers.
void CheckTable(const TableConfig& table, const std::string& prefix, Problems* problems);
void CheckInitializer(const InitializerConfig& initializer, const std::string& prefix,
                      Problems* problems);
void CheckSparseOptimizer(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                          Problems* problems);
void CheckDenseOptimizer(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                         Problems* problems);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_RANGES_H_
