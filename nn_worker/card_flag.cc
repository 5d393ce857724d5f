#include "nn_worker/card_flag.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace satrap {

Flag CardFlag(bool program_has_cards, absl::optional<int>* card) {
  Flag flag = NumberFlag("card", "N", "the card of this machine to train on (default: 0)", card, 0);
  if (program_has_cards) return flag;
  flag.take = [take = std::move(flag.take)](const std::string& value) -> std::string {
    const std::string problem = take(value);
    if (!problem.empty()) return problem;
    return ": this program has no cards; run nn_worker_cuda, or leave --card out";
  };
  return flag;
}

absl::StatusOr<int> CardOfRank(absl::optional<int> flag, const NnWorkerConfig& config) {
  if (flag.has_value() && config.device() != NnWorkerConfig::CUDA) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--card=", *flag, ": the job's nn_worker.device is ",
        NnWorkerConfig::Device_Name(config.device()), ", which has no cards; leave --card out"));
  }
  return flag.value_or(0);
}

}  // namespace satrap
