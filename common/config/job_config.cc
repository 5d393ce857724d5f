#include "common/config/job_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/field_path.h"
#include "common/config/text_format.h"
#include "common/config/validate_job.h"
#include "common/numeric/hash.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace satrap {
namespace {

std::vector<std::string> ZooModels(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() == ".textproto") names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status ExpandZooModel(const std::string& install_dir, JobConfig* job) {
  if (!job->model().has_zoo() || job->model().layers_size() > 0) return absl::OkStatus();
  const std::string& zoo = job->model().zoo();
  const std::string folder = install_dir + "/nn_worker/models";
  const std::vector<std::string> names = ZooModels(folder);
  if (std::find(names.begin(), names.end(), zoo) == names.end()) {
    return absl::NotFoundError(
        absl::StrCat("model.zoo: there is no model '", zoo, "' in ", folder, ", which has ",
                     names.empty() ? "none" : absl::StrJoin(names, ", "), DidYouMean(zoo, names)));
  }
  ModelConfig graph;
  const absl::Status status = ParseTextFile(absl::StrCat(folder, "/", zoo, ".textproto"), &graph);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("model.zoo: ", status.message()));
  }
  *job->mutable_model()->mutable_layers() = graph.layers();
  if (!job->model().has_output() && graph.has_output()) {
    job->mutable_model()->set_output(graph.output());
  }
  return absl::OkStatus();
}

// Makes the submessages present whose defaults apply even if the file does not mention them, so
// that FillDefaults reaches them. An unset oneof becomes its default kind.
void MakeSectionsPresent(JobConfig* job) {
  job->mutable_data();
  job->mutable_model();
  job->mutable_dense_optimizer();
  if (job->dense_optimizer().kind_case() == DenseOptimizerConfig::KIND_NOT_SET) {
    job->mutable_dense_optimizer()->mutable_adam();
  }
  job->mutable_evaluation();
  job->mutable_checkpoint();
  job->mutable_data_loader();
  job->mutable_embedding_worker();
  job->mutable_embedding_ps();
  job->mutable_nn_worker();
  for (TableConfig& table : *job->mutable_tables()) {
    table.mutable_learning_rate_schedule();
    for (SegmentConfig& segment : *table.mutable_segments()) {
      if (segment.initializer().kind_case() == InitializerConfig::KIND_NOT_SET) {
        segment.mutable_initializer()->mutable_uniform();
      }
      if (segment.optimizer().kind_case() == SparseOptimizerConfig::KIND_NOT_SET) {
        segment.mutable_optimizer()->mutable_adagrad();
      }
    }
  }
}

// An override of a layer needs the layer to exist, so those below model.layers are applied after
// the zoo model is expanded, all others before it: one of them may choose the zoo model.
bool ActsOnLayers(absl::string_view assignment) {
  return absl::StartsWith(assignment, "model.layers");
}

}  // namespace

absl::StatusOr<JobConfig> LoadJob(const std::string& path, const std::vector<std::string>& sets,
                                  const std::string& install_dir) {
  JobConfig job;
  RETURN_IF_ERROR(ParseTextFile(path, &job));
  for (const std::string& assignment : sets) {
    if (!ActsOnLayers(assignment)) RETURN_IF_ERROR(SetField(assignment, &job));
  }
  RETURN_IF_ERROR(ExpandZooModel(install_dir, &job));
  for (const std::string& assignment : sets) {
    if (ActsOnLayers(assignment)) RETURN_IF_ERROR(SetField(assignment, &job));
  }
  ResolveJob(&job);
  const absl::Status status = ValidateJob(job);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a valid job:\n", status.message()));
  }
  return job;
}

absl::StatusOr<JobConfig> LoadResolvedJob(const std::string& path) {
  JobConfig job;
  RETURN_IF_ERROR(ParseTextFile(path, &job));
  ResolveJob(&job);
  RETURN_IF_ERROR(ValidateJob(job));
  return job;
}

void ResolveJob(JobConfig* job) {
  MakeSectionsPresent(job);
  FillDefaults(job);
}

std::string ResolvedJobText(const JobConfig& job) {
  JobConfig resolved = job;
  ResolveJob(&resolved);
  return ToText(resolved);
}

uint64_t JobFingerprint(const JobConfig& job) {
  // Where the data and the run folder lie is not part of the job: peers may mount them elsewhere.
  JobConfig identity = job;
  ResolveJob(&identity);
  identity.clear_data_root();
  identity.clear_run_dir();
  identity.clear_init_from();
  identity.mutable_data()->clear_train_files();
  identity.mutable_data()->clear_valid_files();
  identity.mutable_data()->clear_test_files();
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    // The default order of map fields differs between processes; this one does not.
    coded.SetSerializationDeterministic(true);
    CHECK(identity.SerializeToCodedStream(&coded));
  }
  return Xxh64(bytes);
}

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
