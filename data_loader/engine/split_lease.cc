#include "data_loader/engine/split_lease.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/reliable_call.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

absl::StatusOr<absl::optional<uint32_t>> SplitOf(const absl::StatusOr<rpc::Message>& answer,
                                                 uint32_t num_splits) {
  if (!answer.ok()) {
    return absl::Status(answer.status().code(),
                        absl::StrCat("LeaseSplit: ", answer.status().message()));
  }
  LeaseSplitAnswer lease;
  if (!lease.ParseFromString(answer->header) || lease.outcome() != DONE) {
    return absl::InternalError("LeaseSplit: the coordinator's answer breaks the contract");
  }
  if (lease.ended()) return absl::optional<uint32_t>();
  if (lease.split() >= num_splits) {
    return absl::InternalError(
        absl::StrCat("LeaseSplit: split ", lease.split(), " of ", num_splits));
  }
  return absl::optional<uint32_t>(lease.split());
}

}  // namespace

SplitLease::SplitLease(const Options& options, Executor* executor, rpc::Channel* coordinator)
    : options_(options),
      executor_(executor),
      coordinator_(coordinator),
      numbers_(std::make_shared<rpc::CallNumbers>()) {}

void SplitLease::NextSplit(uint32_t epoch, Callback done) {
  const uint64_t number = numbers_->Begin();
  LeaseSplitRequest request;
  *request.mutable_envelope() = options_.envelope;
  request.mutable_call()->set_sender(options_.loader_index);
  request.mutable_call()->set_number(number);
  request.set_epoch(epoch);
  request.set_num_splits(options_.num_splits);
  auto make_request = [request, numbers = numbers_]() mutable {
    request.mutable_call()->set_oldest_open(numbers->oldest_open());
    return rpc::Message{request.SerializeAsString(), Buffer()};
  };
  auto answered = [numbers = numbers_, number, num_splits = options_.num_splits,
                   done = std::move(done)](absl::StatusOr<rpc::Message> answer) mutable {
    numbers->End(number);
    done(SplitOf(answer, num_splits));
  };
  rpc::StartReliableCall(executor_, coordinator_, kLeaseSplit, options_.timeouts,
                         std::move(make_request), std::move(answered));
}

}  // namespace satrap
