#include "embedding_worker/ps_fan_out.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/mutex.h"
#include "common/rpc/reliable_call.h"
#include "proto/hot.pb.h"

namespace satrap {

namespace {

// What the calls of one fan-out share.
class Gathering {
 public:
  Gathering(size_t num_requests, PsFanOut::Done done)
      : answers_(num_requests), missing_(num_requests), done_(std::move(done)) {}

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

 private:
  Mutex mutex_;
  std::vector<rpc::Message> answers_;  // guarded while some are missing
  size_t missing_ GUARDED_BY(mutex_);
  bool failed_ GUARDED_BY(mutex_) = false;
  PsFanOut::Done done_;
};

}  // namespace

PsFanOut::PsFanOut(Executor* executor, std::vector<rpc::Channel*> ps,
                   const rpc::RpcTimeouts& timeouts)
    : executor_(executor), ps_(std::move(ps)), timeouts_(timeouts) {}

void PsFanOut::Call(const rpc::Method& method, std::vector<PsRequest> requests, Done done) {
  CHECK(!requests.empty());
  auto gathering = std::make_shared<Gathering>(requests.size(), std::move(done));
  for (size_t i = 0; i < requests.size(); ++i) {
    const int ps = requests[i].ps;
    auto answered = [gathering, i, ps, method](absl::StatusOr<rpc::Message> answer) {
      if (answer.ok() && rpc::OutcomeOf(*answer) == OLD) {
        answer = absl::InternalError("answered OLD to a call that is open");
      }
      if (answer.ok()) {
        gathering->Add(i, *std::move(answer));
      } else {
        gathering->Fail(absl::Status(answer.status().code(),
                                     absl::StrCat("embedding_ps ", ps, " to ", method.path, ": ",
                                                  answer.status().message())));
      }
    };
    rpc::StartReliableCall(
        executor_, ps_[ps], method, timeouts_,
        [message = std::move(requests[i].message)] { return message; }, std::move(answered));
  }
}

}  // namespace satrap
