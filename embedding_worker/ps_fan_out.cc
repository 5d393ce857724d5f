#include "embedding_worker/ps_fan_out.h"

#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/thread/mutex.h"

namespace satrap {

namespace {

// One fan-out: collects the answers to its requests. It ends when it has all of them, or the first
// error.
class FanOutCall : public std::enable_shared_from_this<FanOutCall> {
 public:
  FanOutCall(size_t num_requests, PsFanOut::Done done)
      : answers_(num_requests), missing_(num_requests), done_(std::move(done)) {}

  // Makes the callback of request `index`.
  rpc::Callback Answer(size_t index) {
    return [self = shared_from_this(), index](absl::StatusOr<rpc::Message> answer) {
      if (answer.ok()) {
        self->Add(index, *std::move(answer));
      } else {
        self->Fail(answer.status());
      }
    };
  }

 private:
  void Add(size_t index, rpc::Message answer) {
    {
      MutexLock lock(&mutex_);
      if (failed_) return;
      answers_[index] = std::move(answer);
      if (--missing_ > 0) return;
    }
    done_(std::move(answers_));
  }

  void Fail(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      if (failed_) return;
      failed_ = true;
    }
    done_(status);
  }

  Mutex mutex_;
  // Guarded by the mutex while answers are missing. After the last answer nothing writes to this
  // vector any more, so it is moved out without the lock.
  std::vector<rpc::Message> answers_;
  size_t missing_ GUARDED_BY(mutex_);
  bool failed_ GUARDED_BY(mutex_) = false;
  PsFanOut::Done done_;
};

}  // namespace

PsFanOut::PsFanOut(Executor* executor, const std::vector<rpc::Channel*>& ps,
                   const Envelope& envelope, uint32_t worker, const rpc::RpcTimeouts& timeouts)
    // The sender given here is not used, because Updates are forwarded with the ids of their ranks.
    : updates_({rpc::kUpdate, envelope, worker, timeouts}, executor,
               rpc::PeersOf("embedding_ps", ps)),
      apply_steps_({rpc::kApplyStep, envelope, worker, timeouts}, executor,
                   rpc::PeersOf("embedding_ps", ps)) {
  for (const rpc::Peer& peer : rpc::PeersOf("embedding_ps", ps)) {
    lookups_.emplace_back(rpc::NumberedClient::Options{rpc::kLookup, envelope, worker, timeouts},
                          executor, std::vector<rpc::Peer>{peer});
  }
}

void PsFanOut::Lookup(std::vector<PsRequest> requests, Done done) {
  CHECK(!requests.empty());
  auto call = std::make_shared<FanOutCall>(requests.size(), std::move(done));
  for (size_t i = 0; i < requests.size(); ++i) {
    lookups_[requests[i].ps].Call(0, std::move(requests[i].message), call->Answer(i));
  }
}

void PsFanOut::Update(const CallId& push, std::vector<PsRequest> requests, Done done) {
  CHECK(!requests.empty());
  auto call = std::make_shared<FanOutCall>(requests.size(), std::move(done));
  for (size_t i = 0; i < requests.size(); ++i) {
    updates_.Forward(requests[i].ps, push, std::move(requests[i].message), call->Answer(i));
  }
}

void PsFanOut::ApplyStep(const CallId& push, const ApplyStepHeader& header, Done done) {
  auto call = std::make_shared<FanOutCall>(num_ps(), std::move(done));
  for (int ps = 0; ps < num_ps(); ++ps) {
    apply_steps_.Forward(ps, push, rpc::MessageOf(header), call->Answer(ps));
  }
}

}  // namespace satrap
