#include "common/config/job_config.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/near_match.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "common/config/field_path.h"
#include "common/config/text_format.h"
#include "common/config/validate/validate_job.h"
#include "common/numeric/hash.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace satrap {
namespace {

// Pointers to valid_kafka and test_kafka, if the job has them.
std::vector<KafkaConfig*> EvaluationTopics(DataConfig* data) {
  std::vector<KafkaConfig*> topics;
  if (data->has_valid_kafka()) topics.push_back(data->mutable_valid_kafka());
  if (data->has_test_kafka()) topics.push_back(data->mutable_test_kafka());
  return topics;
}

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
  const std::string folder = install_dir + "/nn_worker/zoo";
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

// Copies the settings that valid_kafka and test_kafka take from kafka if they do not set them.
void InheritTopicSettings(const KafkaConfig& from, KafkaConfig* to) {
  if (to->brokers_size() == 0) *to->mutable_brokers() = from.brokers();
  if (to->settings_size() == 0) *to->mutable_settings() = from.settings();
  if (to->columns_size() == 0) *to->mutable_columns() = from.columns();
  if (!to->has_format() && from.has_format()) to->set_format(from.format());
}

void ResolveTopics(DataConfig* data) {
  for (KafkaConfig* evaluation : EvaluationTopics(data)) {
    InheritTopicSettings(data->kafka(), evaluation);
    if (!evaluation->has_start()) evaluation->mutable_start()->set_at(KafkaStart::EARLIEST);
    if (!evaluation->has_end()) evaluation->mutable_end()->set_at(KafkaEnd::AT_START);
  }
  if (!data->has_kafka()) return;
  if (!data->kafka().has_start())
    data->mutable_kafka()->mutable_start()->set_at(KafkaStart::EARLIEST);
  if (!data->kafka().has_end()) data->mutable_kafka()->mutable_end()->set_at(KafkaEnd::NEVER);
}

template <typename Message>
bool SameElements(const google::protobuf::RepeatedPtrField<Message>& a,
                  const google::protobuf::RepeatedPtrField<Message>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.SerializeAsString() == y.SerializeAsString();
  });
}

// Creates the submessages whose defaults apply even if the file does not mention them, so that
// FillDefaults reaches them. An unset oneof gets its default kind.
void MakeSectionsPresent(JobConfig* job) {
  ResolveTopics(job->mutable_data());
  job->mutable_model();
  job->mutable_dense_optimizer();
  if (job->dense_optimizer().kind_case() == DenseOptimizerConfig::KIND_NOT_SET) {
    job->mutable_dense_optimizer()->mutable_adam();
  }
  job->mutable_dense_optimizer()->mutable_learning_rate_schedule();
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

// Clears the settings that say how a cluster is reached, how much memory its messages take, how
// long the run waits for brokers, and in which group the run publishes its progress.
void LeaveOutAddresses(KafkaConfig* kafka) {
  kafka->clear_brokers();
  kafka->clear_settings();
  kafka->clear_group_id();
  kafka->clear_queue_bytes();
  kafka->clear_broker_wait_seconds();
}

// An override that gives a stream files removes its topics, and one that gives it topics removes
// its files, because a stream cannot have both.
void DropReplacedSource(absl::string_view assignment, DataConfig* data) {
  const absl::string_view field = assignment.substr(0, assignment.find('='));
  const auto names_topics = [field](absl::string_view section) {
    absl::string_view of_section = field;
    return absl::ConsumePrefix(&of_section, section) &&
           (of_section == ".topics" || of_section == ".topic_pattern");
  };
  if (field == "data.train_files") data->clear_kafka();
  if (field == "data.valid_files") data->clear_valid_kafka();
  if (field == "data.test_files") data->clear_test_kafka();
  if (names_topics("data.kafka")) data->clear_train_files();
  if (names_topics("data.valid_kafka")) data->clear_valid_files();
  if (names_topics("data.test_kafka")) data->clear_test_files();
}

// An override of a layer needs the layer to exist. So overrides below model.layers are applied
// after the zoo model is expanded. All other overrides are applied before that, because they may
// choose the zoo model.
bool ActsOnLayers(absl::string_view assignment) {
  return absl::StartsWith(assignment, "model.layers");
}

}  // namespace

absl::StatusOr<JobConfig> LoadJob(const std::string& path, const std::vector<std::string>& sets,
                                  const std::string& install_dir) {
  JobConfig job;
  RETURN_IF_ERROR(ParseTextFile(path, &job));
  // The file may hold a resolved job. In such a job evaluation streams have copies of the settings
  // of data.kafka.
  ForgetInheritedSettings(&job);
  for (const std::string& assignment : sets) {
    if (!ActsOnLayers(assignment)) RETURN_IF_ERROR(SetField(assignment, &job));
    DropReplacedSource(assignment, job.mutable_data());
  }
  RETURN_IF_ERROR(ExpandZooModel(install_dir, &job));
  for (const std::string& assignment : sets) {
    if (ActsOnLayers(assignment)) RETURN_IF_ERROR(SetField(assignment, &job));
  }
  for (const TextRule& rule : TextRules()) {
    if (rule.is_open(job.data())) rule.take_newest(job.mutable_data());
  }
  ResolveJob(&job);
  const absl::Status status = ValidateJob(job);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a valid job:\n", status.message()));
  }
  return job;
}

absl::StatusOr<JobConfig> ReadResolvedJob(const std::string& path) {
  JobConfig job;
  RETURN_IF_ERROR(ParseTextFile(path, &job));
  ResolveJob(&job);
  return job;
}

void ResolveJob(JobConfig* job) {
  MakeSectionsPresent(job);
  // The id may be left out if there is only one table; it is then 0.
  if (job->tables_size() == 1 && !job->tables(0).has_id()) job->mutable_tables(0)->set_id(0);
  FillDefaults(job);
}

void ForgetInheritedSettings(JobConfig* job) {
  if (!job->data().has_kafka()) return;
  const KafkaConfig& from = job->data().kafka();
  for (KafkaConfig* to : EvaluationTopics(job->mutable_data())) {
    if (std::equal(to->brokers().begin(), to->brokers().end(), from.brokers().begin(),
                   from.brokers().end())) {
      to->clear_brokers();
    }
    if (SameElements(to->settings(), from.settings())) to->clear_settings();
  }
}

std::string ResolvedJobText(const JobConfig& job) {
  JobConfig resolved = job;
  ResolveJob(&resolved);
  return ToText(resolved);
}

uint64_t JobFingerprint(const JobConfig& job) {
  // The paths of the data and of the run folder are left out, because peers may mount them
  // elsewhere.
  JobConfig identity = job;
  ResolveJob(&identity);
  identity.clear_data_root();
  identity.clear_run_dir();
  identity.clear_init_from();
  identity.clear_kubernetes();
  identity.mutable_data()->clear_train_files();
  identity.mutable_data()->clear_valid_files();
  identity.mutable_data()->clear_test_files();
  for (KafkaConfig* kafka : EvaluationTopics(identity.mutable_data())) LeaveOutAddresses(kafka);
  if (identity.data().has_kafka()) LeaveOutAddresses(identity.mutable_data()->mutable_kafka());
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    // By default the order of map fields differs between processes.
    coded.SetSerializationDeterministic(true);
    CHECK(identity.SerializeToCodedStream(&coded));
  }
  return Xxh64(bytes);
}

}  // namespace satrap
