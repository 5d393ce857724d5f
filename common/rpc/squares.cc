#include "common/rpc/squares.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/buffer.h"
#include "proto/hot.pb.h"

namespace satrap::rpc {

Message AnswerOfSquares(const ExactSum& squares) {
  const auto terms = squares.Terms();
  UpdateAnswerHeader header;
  header.set_outcome(OUTCOME_DONE);
  header.set_squares(terms[0]);
  const size_t others = terms.size() - 1;
  Buffer payload(others * sizeof(double));
  std::copy_n(terms.begin() + 1, others, payload.MutableView<double>(0, others).begin());
  return {header.SerializeAsString(), std::move(payload)};
}

absl::Status AddSquares(const Message& answer, ExactSum* total) {
  UpdateAnswerHeader header;
  if (!header.ParseFromString(answer.header) || !header.has_squares() ||
      answer.payload.size() % sizeof(double) != 0) {
    return absl::InvalidArgumentError("squares: missing in the answer to an Update");
  }
  total->Add(header.squares());
  for (const double term : answer.payload.View<double>(0, answer.payload.size() / sizeof(double))) {
    total->Add(term);
  }
  return absl::OkStatus();
}

}  // namespace satrap::rpc
