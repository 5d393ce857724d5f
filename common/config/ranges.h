// The legal values of tables, initializers, optimizers and cuts: their only home. The validator checks
// whole jobs with these functions, and the factories check what they are given, so the two never
// disagree.
//
// Each function adds a problem for every field out of range, and checks the submessages that are
// set. `prefix` begins the path of each field: "" or "tables[0].segments[1].optimizer.", for
// example.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_RANGES_H_
#define SATRAP_COMMON_CONFIG_RANGES_H_

#include <cstdint>
#include <string>

#include "common/base/problems.h"
#include "proto/job.pb.h"
#include "proto/model.pb.h"
#include "proto/schedule.pb.h"
#include "proto/table.pb.h"

namespace satrap {

inline constexpr int kMaxShards = 1024;                 // of a table in one embedding PS
inline constexpr int64_t kMaxSteps = int64_t{1} << 60;  // of any field that counts steps

// The table with its segments, their initializers and their optimizers.
void CheckTable(const TableConfig& table, const std::string& prefix, Problems* problems);
void CheckInitializer(const InitializerConfig& initializer, const std::string& prefix,
                      Problems* problems);
void CheckSparseOptimizer(const SparseOptimizerConfig& optimizer, const std::string& prefix,
                          Problems* problems);
void CheckSchedule(const LearningRateSchedule& schedule, const std::string& prefix,
                   Problems* problems);
void CheckDenseOptimizer(const DenseOptimizerConfig& optimizer, const std::string& prefix,
                         Problems* problems);
void CheckCheckpoint(const CheckpointConfig& checkpoint, const std::string& prefix,
                     Problems* problems);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_RANGES_H_
