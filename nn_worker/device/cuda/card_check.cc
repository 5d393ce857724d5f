#include "nn_worker/device/cuda/card_check.h"

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

// The oldest compute capability that the kernels are compiled for (third_party/cuda/cuda.bzl).
constexpr int kOldestMajor = 8;

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

absl::Status Refused(const CardAnswers& answers, const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot train on a GPU: ", what, " (CUDA of the driver: ",
                   answers.driver_version == 0 ? "none" : VersionText(answers.driver_version),
                   "; of this program: ", VersionText(answers.program_version), ")"));
}

}  // namespace

absl::Status CheckCard(const CardAnswers& answers) {
  if (answers.driver_version == 0) {
    return Refused(answers, "this machine has no NVIDIA driver; install 580 or later");
  }
  // A driver runs every program of the same major version of CUDA.
  if (answers.driver_version / 1000 < answers.program_version / 1000) {
    return Refused(answers, "the NVIDIA driver is too old; install 580 or later");
  }
  if (!answers.error.empty()) return Refused(answers, answers.error);
  if (answers.card < 0 || answers.card >= answers.num_cards) {
    return Refused(answers,
                   absl::StrCat("there is no card ", answers.card, "; the driver shows ",
                                answers.num_cards, " (CUDA_VISIBLE_DEVICES may hide others)"));
  }
  if (answers.major < kOldestMajor) {
    return Refused(answers,
                   absl::StrCat("card ", answers.card, ", ", answers.name,
                                ", has compute capability ", answers.major, ".", answers.minor,
                                ", but the kernels need ", kOldestMajor, ".0 or later"));
  }
  return absl::OkStatus();
}

}  // namespace satrap
