#include "nn_worker/checkpoint/ps_control_client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/lost_call.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

constexpr int64_t kRetryUs = 100'000;

// The time at which a call to all PSs reports an error of one of them.
enum class ErrorIsTold { kAtOnce, kWhenAllHaveAnswered };

// Runs `done` with OK when `count` calls are answered, or with the first error.
class Together {
 public:
  Together(size_t count, PsControlClient::StatusDone done,
           ErrorIsTold error_is_told = ErrorIsTold::kAtOnce)
      : error_is_told_(error_is_told), missing_(count), done_(std::move(done)) {}

  void Answered(const absl::Status& status) {
    PsControlClient::StatusDone done;
    absl::Status first;
    {
      MutexLock lock(&mutex_);
      if (missing_ == 0) return;
      if (first_.ok()) first_ = status;
      const bool is_over = !status.ok() && error_is_told_ == ErrorIsTold::kAtOnce;
      missing_ = is_over ? 0 : missing_ - 1;
      if (missing_ > 0) return;
      done = std::move(done_);
      first = first_;
    }
    done(std::move(first));
  }

 private:
  const ErrorIsTold error_is_told_;
  Mutex mutex_;
  absl::Status first_ GUARDED_BY(mutex_);  // error
  size_t missing_ GUARDED_BY(mutex_);
  PsControlClient::StatusDone done_ GUARDED_BY(mutex_);
};

void AddTo(const TableStats& stats, std::vector<TableStats>* sums) {
  const auto sum = std::find_if(sums->begin(), sums->end(),
                                [&](const TableStats& s) { return s.name() == stats.name(); });
  if (sum == sums->end()) {
    sums->push_back(stats);
    return;
  }
  sum->set_rows(sum->rows() + stats.rows());
  sum->set_bytes(sum->bytes() + stats.bytes());
}

}  // namespace

PsControlClient::PsControlClient(const Envelope& envelope, const rpc::RpcTimeouts& timeouts,
                                 Executor* executor, std::vector<rpc::Channel*> embedding_ps)
    : envelope_(envelope),
      timeouts_(timeouts),
      executor_(executor),
      embedding_ps_(std::move(embedding_ps)) {
  const std::vector<rpc::Peer> peers = rpc::PeersOf("embedding_ps", embedding_ps_);
  for (const rpc::Method& method :
       {rpc::kBeginCut, rpc::kAwaitCut, rpc::kAbandonCut, rpc::kLoadTables}) {
    for (const rpc::Peer& peer : peers) {
      clients_[method.path].emplace_back(
          rpc::NumberedClient::Options{method, envelope, kCutSender, timeouts}, executor,
          std::vector<rpc::Peer>{peer});
    }
  }
}

void PsControlClient::Call(size_t ps, const rpc::Method& method,
                           const google::protobuf::MessageLite& request, Done done) {
  const auto clients = clients_.find(method.path);
  CHECK(clients != clients_.end()) << method.path;
  clients->second[ps].Call(0, {request.SerializeAsString(), Buffer()}, std::move(done));
}

void PsControlClient::CallAll(const rpc::Method& method,
                              const google::protobuf::MessageLite& request, StatusDone done) {
  auto together = std::make_shared<Together>(num_ps(), std::move(done));
  for (size_t ps = 0; ps < num_ps(); ++ps) {
    Call(ps, method, request,
         [together](absl::StatusOr<rpc::Message> answer) { together->Answered(answer.status()); });
  }
}

void PsControlClient::LoadTables(const std::string& directory, StatusDone done) {
  LoadTablesRequest request;
  request.set_directory(directory);
  // A PS refuses a load while another load runs, so a caller who wants to retry must know that no
  // load is running.
  auto together =
      std::make_shared<Together>(num_ps(), std::move(done), ErrorIsTold::kWhenAllHaveAnswered);
  for (size_t ps = 0; ps < num_ps(); ++ps) {
    Call(ps, rpc::kLoadTables, request, [together](const absl::StatusOr<rpc::Message>& answer) {
      together->Answered(answer.status());
    });
  }
}

struct PsControlClient::StatsCall {
  StatsCall(size_t num_ps,
            absl::AnyInvocable<void(absl::StatusOr<std::vector<satrap::TableStats>>)> done)
      : together(num_ps, [this, done = std::move(done)](absl::Status status) mutable {
          if (!status.ok()) return done(std::move(status));
          MutexLock lock(&mutex);
          done(std::move(sums));
        }) {}

  int64_t give_up_us = 0;
  Mutex mutex;
  std::vector<satrap::TableStats> sums GUARDED_BY(mutex);
  Together together;
};

void PsControlClient::TableStats(
    absl::AnyInvocable<void(absl::StatusOr<std::vector<satrap::TableStats>>)> done) {
  auto call = std::make_shared<StatsCall>(num_ps(), std::move(done));
  call->give_up_us = executor_->NowUs() + timeouts_.silence_timeout_ms * 1000;
  executor_->Post([this, call] {
    for (size_t ps = 0; ps < num_ps(); ++ps) AskForStats(call, ps);
  });
}

void PsControlClient::AskForStats(std::shared_ptr<StatsCall> call, size_t ps) {
  TableStatsRequest request;
  *request.mutable_envelope() = envelope_;
  embedding_ps_[ps]->Call(
      rpc::kTableStats, rpc::MessageOf(request), timeouts_.attempt_timeout_ms,
      [this, call, ps](absl::StatusOr<rpc::Message> answer) {
        if (rpc::IsLost(answer.status()) && executor_->NowUs() < call->give_up_us) {
          executor_->PostAfter(kRetryUs, [this, call, ps] { AskForStats(call, ps); });
          return;
        }
        TableStatsAnswer stats;
        if (!answer.ok()) {
          call->together.Answered(absl::Status(
              answer.status().code(),
              absl::StrCat("TableStats to embedding_ps ", ps, ": ", answer.status().message())));
        } else if (!stats.ParseFromString(answer->header)) {
          call->together.Answered(absl::InvalidArgumentError(
              absl::StrCat("TableStats to embedding_ps ", ps, ": the answer cannot be parsed")));
        } else {
          {
            MutexLock lock(&call->mutex);
            for (const satrap::TableStats& table : stats.tables()) AddTo(table, &call->sums);
          }
          call->together.Answered(absl::OkStatus());
        }
      });
}

}  // namespace satrap
