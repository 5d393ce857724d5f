#include "deploy/coordinator/claim/job_files.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/model_folder.h"
#include "common/kafka/settings.h"
#include "data_loader/source/split_list.h"

namespace satrap {
namespace {

absl::Status CheckFiles(const JobConfig& job) {
  RETURN_IF_ERROR(CheckFilesOfJob(job));
  if (!job.init_from().empty()) {
    const absl::Status found = FindSavedModel(job.init_from()).status();
    if (!found.ok()) {
      return absl::Status(found.code(), absl::StrCat("init_from: ", found.message()));
    }
  }
  const DataConfig& data = job.data();
  for (const auto& [has, kafka] : {std::pair(data.has_kafka(), &data.kafka()),
                                   std::pair(data.has_valid_kafka(), &data.valid_kafka()),
                                   std::pair(data.has_test_kafka(), &data.test_kafka())}) {
    if (has) RETURN_IF_ERROR(ResolveKafkaSettings(*kafka, KafkaRole::kReader).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckFilesOfPods(const JobConfig& job) {
  const absl::Status checked = CheckFiles(job);
  const bool is_of_job = absl::IsNotFound(checked) || absl::IsInvalidArgument(checked) ||
                         absl::IsPermissionDenied(checked);
  if (!is_of_job) return checked;
  return absl::Status(
      checked.code(),
      absl::StrCat(
          "the pods cannot read what the job names: ",
          absl::StrReplaceAll(checked.message(), {{"\n", "; "}}),
          ": check that the volumes and secrets of `kubernetes` have these files and that user "
          "65532 may read them, or correct the job"));
}

}  // namespace satrap
