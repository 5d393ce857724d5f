#include "nn_worker/trainer/warm_start.h"

#include <cstring>
#include <future>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/saved_features.h"
#include "common/config/warm_start.h"

namespace satrap {
namespace {

// The message that rank 0 sends to the others: the step of the model, then its dense network.
std::string ToRanks(const StartModel& model) {
  std::string bytes(sizeof(model.step), '\0');
  std::memcpy(bytes.data(), &model.step, sizeof(model.step));
  return bytes + model.dense;
}

void ReportTables(const StartModel& model, const JobConfig& job, WarmStartReport* report) {
  const absl::flat_hash_set<std::string> saved(model.tables.begin(), model.tables.end());
  absl::flat_hash_set<std::string> own;
  for (const TableConfig& table : job.tables()) {
    own.insert(table.name());
    if (!TakesName(job.warm_start(), table.name())) continue;
    (saved.contains(table.name()) ? report->taken : report->fresh).push_back(table.name());
  }
  for (const std::string& table : model.tables) {
    if (!own.contains(table)) report->ignored.push_back(table);
  }
}

absl::Status CheckNames(const StartModel& model, const JobConfig& job, const Network& network) {
  std::vector<std::string> names = model.tables;
  for (const TableConfig& table : job.tables()) names.push_back(table.name());
  for (std::string& name : network.value_names()) names.push_back(std::move(name));
  ASSIGN_OR_RETURN(std::vector<NamedArray> arrays, DecodeArrays(model.dense));
  for (NamedArray& array : arrays) names.push_back(std::move(array.name));
  return CheckPatterns(job.warm_start(), names, model.directory);
}

absl::Status LoadTables(const std::string& directory, PsControlClient* embedding_ps) {
  std::promise<absl::Status> loaded;
  embedding_ps->LoadTables(directory,
                           [&loaded](absl::Status status) { loaded.set_value(std::move(status)); });
  return loaded.get_future().get();
}

// Describes the tables that are taken, with their rows and the features that read some of these
// rows.
void DescribeTables(const StartModel& model, const JobConfig& job, WarmStartResult* result) {
  for (const TableConfig& table : job.tables()) {
    if (!TakesName(job.warm_start(), table.name())) continue;
    for (const SavedTable& saved : model.manifest.tables()) {
      if (saved.name() != table.name()) continue;
      WarmStartResult::Table* taken = result->add_tables();
      taken->set_name(saved.name());
      taken->set_rows(saved.rows());
      TableFit fit = FitOf(model.manifest, job, table.name());
      for (std::string& name : fit.features) taken->add_features(std::move(name));
      for (std::string& name : fit.features_without_rows) {
        taken->add_features_without_rows(std::move(name));
      }
    }
  }
  for (std::string& warning : IdWarnings(model.manifest, job)) {
    result->add_warnings(std::move(warning));
  }
}

void Append(std::vector<std::string> names, std::vector<std::string>* all) {
  for (std::string& name : names) all->push_back(std::move(name));
}

void DescribeResult(const StartModel& model, const JobConfig& job,
                    const std::vector<std::string>& parameters, WarmStartReport* report) {
  WarmStartResult& result = report->result;
  result.set_model(model.directory);
  result.set_step(model.step);
  DescribeTables(model, job, &result);
  for (const std::string& name : parameters) result.add_parameters(name);
  for (const std::string& name : report->fresh) result.add_fresh(name);
  for (const std::string& name : report->ignored) result.add_ignored(name);
  result.set_optimizer_state(report->has_state);
}

}  // namespace

absl::StatusOr<WarmStartReport> WarmStart(StartModel* model, const JobConfig& job, Network* network,
                                          Collective* collective, PsControlClient* embedding_ps) {
  WarmStartReport report;
  std::string told;
  if (collective->rank() == 0) {
    // The tables are loaded first, so that no rank trains a part before their rows exist.
    RETURN_IF_ERROR(LoadOrLookAgain(model, [&](const StartModel& found) -> absl::Status {
      RETURN_IF_ERROR(CheckNames(found, job, *network));
      return LoadTables(found.directory, embedding_ps);
    }));
    ReportTables(*model, job, &report);
    told = ToRanks(*model);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> from_ranks, collective->AllGatherBytes(told));
  absl::string_view bytes = from_ranks[0];
  uint64_t step = 0;
  if (bytes.size() < sizeof(step)) return absl::InternalError("rank 0 did not send the model");
  std::memcpy(&step, bytes.data(), sizeof(step));
  bytes.remove_prefix(sizeof(step));
  ASSIGN_OR_RETURN(Network::Taken dense, network->StartFrom(bytes, job.warm_start(), step));
  const std::vector<std::string> parameters = dense.taken;
  Append(std::move(dense.taken), &report.taken);
  Append(std::move(dense.fresh), &report.fresh);
  Append(std::move(dense.ignored), &report.ignored);
  report.has_state = dense.has_state;
  if (collective->rank() == 0) DescribeResult(*model, job, parameters, &report);
  if (collective->rank() == 0 && report.taken.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("nothing of the model in ", model->directory,
                     " is taken: it has no table and no dense parameter of this job",
                     job.warm_start().only_size() > 0 ? " that warm_start.only names" : ""));
  }
  return report;
}

}  // namespace satrap
