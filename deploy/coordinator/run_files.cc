#include "deploy/coordinator/run_files.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"
#include "common/rpc/header.h"
#include "deploy/coordinator/splits/split_files.h"

namespace satrap {

void RunFiles::Fix(const FixSplitsRequest& request, rpc::Callback respond) {
  if (!topics_->known() && log_->EndedStatus().ok()) {
    if (request.loader() >= static_cast<uint32_t>(job_->data_loader().replicas())) {
      return respond(absl::InvalidArgumentError(absl::StrCat("loader: ", request.loader())));
    }
    // In a shared_ptr, because the lambda must be copyable.
    const auto shared = std::make_shared<rpc::Callback>(std::move(respond));
    topics_->Await(request.loader(), [this, request, shared](const absl::Status& status) {
      if (!status.ok()) return (*shared)(status);
      Fix(request, std::move(*shared));
    });
    return;
  }
  absl::StatusOr<SplitList> list = ListFor(request);
  if (!list.ok()) return respond(list.status());
  FixSplitsAnswer answer;
  *answer.mutable_splits() = *std::move(list);
  respond(rpc::MessageOf(answer));
}

absl::StatusOr<SplitList> RunFiles::ListFor(const FixSplitsRequest& request) {
  {
    MutexLock lock(&state_->mutex);
    // If the run has finished, the loader learns that from its heartbeat, as all roles do.
    if (state_->end.state() == FINISHED) {
      return WithTopics(request.splits(), log_->log().topics());
    }
    if (state_->end.has_ended()) return state_->end.EndedError();
  }
  if (!first_.has_value()) first_ = request;
  const std::string difference = FirstDifference(first_->splits(), request.splits());
  if (!difference.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        MemberName(DATA_LOADER, static_cast<int>(request.loader())), " sees ", difference,
        ", unlike ", MemberName(DATA_LOADER, static_cast<int>(first_->loader())),
        ": all loaders must see the same files"));
  }
  if (!splits_.has_value()) {
    ASSIGN_OR_RETURN(splits_, FixSplitList(*job_, request.splits(), topics_->first_topics(),
                                           start_.order_fingerprint, start_.writer, file_system_));
  }
  const uint64_t order = OrderFingerprint(*job_, WithTopics(*splits_, topics_->first_topics()));
  MutexLock lock(&state_->mutex);
  if (start_.order_fingerprint.has_value() && *start_.order_fingerprint != order) {
    const std::string reason =
        absl::StrCat("the run cannot continue from ", start_.cut_folder,
                     ": its data, or a field of the job that orders samples (mode, seed, lanes, "
                     "global_batch_size, data), has changed since the cut was made");
    state_->end.EndForGood(EndingOf(Ending::OTHER_DATA, reason));
    return absl::FailedPreconditionError(reason);
  }
  state_->order_fingerprint = order;
  return WithTopics(*splits_, topics_->topics());
}

}  // namespace satrap
