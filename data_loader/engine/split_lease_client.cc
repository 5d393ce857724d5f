#include "data_loader/engine/split_lease_client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/header.h"
#include "proto/control.pb.h"

namespace satrap {
namespace {

absl::StatusOr<absl::optional<uint32_t>> SplitOf(const absl::StatusOr<rpc::Message>& answer,
                                                 uint32_t num_splits) {
  if (!answer.ok()) return answer.status();
  LeaseSplitAnswer lease;
  if (!lease.ParseFromString(answer->header)) {
    return absl::InternalError("LeaseSplit: the coordinator's answer is malformed");
  }
  if (lease.ended()) return absl::optional<uint32_t>();
  if (lease.split() >= num_splits) {
    return absl::InternalError(absl::StrCat("LeaseSplit: the coordinator leased split ",
                                            lease.split(), " of ", num_splits));
  }
  return absl::optional<uint32_t>(lease.split());
}

}  // namespace

SplitLeaseClient::SplitLeaseClient(const Options& options, Executor* executor,
                                   rpc::Channel* coordinator)
    : num_splits_(options.num_splits),
      coordinator_({kLeaseSplit, options.envelope, options.loader_index, options.timeouts},
                   executor, {{"coordinator", coordinator}}) {}

void SplitLeaseClient::NextSplit(uint32_t epoch, Callback done) {
  LeaseSplitRequest request;
  request.set_epoch(epoch);
  request.set_num_splits(num_splits_);
  coordinator_.Call(0, rpc::MessageOf(request),
                    [num_splits = num_splits_,
                     done = std::move(done)](const absl::StatusOr<rpc::Message>& answer) mutable {
                      done(SplitOf(answer, num_splits));
                    });
}

}  // namespace satrap
