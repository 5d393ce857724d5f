#include "nn_worker/report/warm_start_report.h"

#include <memory>

#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/file/durable_file.h"

namespace satrap {

absl::Status ReportWarmStart(const WarmStartResult& result, const std::string& run_dir,
                             const Logger& logger) {
  logger.Info("begins with a model", {{"model", result.model()},
                                      {"step", result.step()},
                                      {"tables", result.tables_size()},
                                      {"dense_parameters", result.parameters_size()},
                                      {"dense_optimizer_state", result.optimizer_state()}});
  for (const WarmStartResult::Table& table : result.tables()) {
    logger.Info("takes the rows of a table",
                {{"table", table.name()},
                 {"rows", table.rows()},
                 {"features", absl::StrJoin(table.features(), " ")},
                 {"features_without_rows", absl::StrJoin(table.features_without_rows(), " ")}});
  }
  if (result.parameters_size() > 0) {
    logger.Info("takes dense parameters", {{"names", absl::StrJoin(result.parameters(), " ")}});
  }
  if (result.fresh_size() > 0) {
    logger.Info("the model lacks parts of the job, which start with initial values",
                {{"names", absl::StrJoin(result.fresh(), " ")}});
  }
  if (result.ignored_size() > 0) {
    logger.Info("ignores the parts of the model that the job does not have",
                {{"names", absl::StrJoin(result.ignored(), " ")}});
  }
  for (const std::string& warning : result.warnings()) logger.Warning(warning);
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(run_dir + kWarmStartFile));
  RETURN_IF_ERROR(file->Append(CheckedText(result)));
  return file->Commit();
}

void ReportScoring(const std::string& model, uint64_t step,
                   const std::vector<std::string>& warnings, const Logger& logger) {
  logger.Info("scores with a model", {{"model", model}, {"step", step}});
  for (const std::string& warning : warnings) logger.Warning(warning);
}

}  // namespace satrap
