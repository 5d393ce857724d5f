#include "nn_worker/card_flag.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace satrap {
namespace {

constexpr absl::string_view kFlag = "--card";

absl::StatusOr<int> NumberOf(const std::string& text) {
  int card = 0;
  if (absl::SimpleAtoi(text, &card) && card >= 0) return card;
  return absl::InvalidArgumentError(absl::StrCat("--card: '", text, "' is not a number >= 0"));
}

}  // namespace

absl::StatusOr<absl::optional<int>> TakeCardFlag(bool program_has_cards,
                                                 std::vector<std::string>* args) {
  absl::optional<int> card;
  std::vector<std::string> others;
  for (size_t i = 0; i < args->size(); ++i) {
    const std::string& arg = (*args)[i];
    const size_t equals = arg.find('=');
    const bool has_next = equals == std::string::npos && i + 1 < args->size();
    if (arg.substr(0, equals) != kFlag) {
      others.push_back(arg);
      // A flag in two words: the second is its value, whatever it looks like.
      if (absl::StartsWith(arg, "--") && has_next) others.push_back((*args)[++i]);
      continue;
    }
    if (card.has_value()) return absl::InvalidArgumentError("--card is given twice");
    if (equals == std::string::npos && !has_next) {
      return absl::InvalidArgumentError("--card needs a value");
    }
    const auto number = NumberOf(has_next ? (*args)[++i] : arg.substr(equals + 1));
    if (!number.ok()) return number.status();
    card = *number;
  }
  if (card.has_value() && !program_has_cards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--card=", *card, ": this program has no cards; run nn_worker_cuda, or leave --card out"));
  }
  *args = std::move(others);
  return card;
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
