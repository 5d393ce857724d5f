#include "common/rpc/rpc.h"

#include "absl/strings/cord.h"

namespace satrap::rpc {
namespace {

constexpr char kAnswerBegun[] = "satrap/answer_begun";

}  // namespace

absl::Status MarkAnswerBegun(absl::Status deadline_exceeded) {
  deadline_exceeded.SetPayload(kAnswerBegun, absl::Cord());
  return deadline_exceeded;
}

bool AnswerHadBegun(const absl::Status& status) {
  return status.GetPayload(kAnswerBegun).has_value();
}

}  // namespace satrap::rpc
