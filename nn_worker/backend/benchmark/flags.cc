#include "nn_worker/backend/benchmark/flags.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace satrap {
namespace {

constexpr int64_t kMostBatch = int64_t{1} << 24;
constexpr int kMostCard = 1023;

absl::Status Misuse(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(what,
                   "; the flags are --batch=N, --card=N, --only=TEXT and "
                   "--precision=F32|TF32|BF16|F16"));
}

}  // namespace

absl::StatusOr<BenchmarkFlags> ParseBenchmarkFlags(const std::vector<std::string>& args) {
  BenchmarkFlags flags;
  for (const std::string& arg : args) {
    absl::string_view value = arg;
    if (absl::ConsumePrefix(&value, "--batch=")) {
      if (!absl::SimpleAtoi(value, &flags.batch) || flags.batch < 1 || flags.batch > kMostBatch) {
        return Misuse(
            absl::StrCat("--batch: '", value, "' is not a number from 1 to ", kMostBatch));
      }
    } else if (absl::ConsumePrefix(&value, "--card=")) {
      if (!absl::SimpleAtoi(value, &flags.card) || flags.card < 0 || flags.card > kMostCard) {
        return Misuse(absl::StrCat("--card: '", value, "' is not a number from 0 to ", kMostCard));
      }
    } else if (absl::ConsumePrefix(&value, "--only=")) {
      flags.only = std::string(value);
    } else if (absl::ConsumePrefix(&value, "--precision=")) {
      NnWorkerConfig::Precision precision;
      if (!NnWorkerConfig::Precision_Parse(std::string(value), &precision)) {
        return Misuse(absl::StrCat("--precision: there is no '", value, "'"));
      }
      flags.precision = precision;
    } else {
      return Misuse(absl::StrCat("unknown argument '", arg, "'"));
    }
  }
  return flags;
}

}  // namespace satrap
