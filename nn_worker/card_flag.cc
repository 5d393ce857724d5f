#include "nn_worker/card_flag.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace satrap {
namespace {

constexpr absl::string_view kFlag = "--card=";

}  // namespace

absl::StatusOr<int> TakeCardFlag(std::vector<std::string>* args) {
  int card = 0;
  bool given = false;
  for (size_t i = 0; i < args->size();) {
    const std::string arg = (*args)[i];
    if (!absl::StartsWith(arg, kFlag)) {
      ++i;
      continue;
    }
    if (given) return absl::InvalidArgumentError("--card is given twice");
    given = true;
    const std::string number = arg.substr(kFlag.size());
    if (!absl::SimpleAtoi(number, &card) || card < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--card: '", number, "' is not a number >= 0"));
    }
    args->erase(args->begin() + static_cast<std::ptrdiff_t>(i));
  }
  return card;
}

}  // namespace satrap
