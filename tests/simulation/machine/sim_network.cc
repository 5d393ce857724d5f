#include "tests/simulation/machine/sim_network.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/chunk/chunk.h"
#include "common/rpc/frame.h"

namespace satrap::simulation {

// A connection breaks after this many requests, and a new one may reach another process.
constexpr uint64_t kRequestsOfAConnection = 32;

// One attempt of a call. Its deliveries and its deadline share it: the first of them runs `done`.
struct Attempt {
  rpc::Callback done;
  bool finished = false;

  void Finish(absl::StatusOr<rpc::Message> answer) {
    if (std::exchange(finished, true)) return;
    done(std::move(answer));
  }
};

class SimChannel final : public rpc::Channel {
 public:
  SimChannel(SimNetwork* network, SimNetwork::Address to, SimProcess* from)
      : network_(network), to_(to), from_(from) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (from_ != nullptr && !from_->Acts()) return;
    ++network_->counts_.calls;
    auto attempt = std::make_shared<Attempt>();
    attempt->done = std::move(done);
    if (method == rpc::kSendChunk || method == rpc::kFetchChunk) ++network_->counts_.chunks;
    const absl::Status size = network_->CheckSize("request of", method, request);
    if (!size.ok()) return Deliver(size, std::move(attempt));
    network_->loop_->PostAfterFor(owner(), timeout_ms * 1000, [attempt] {
      attempt->Finish(absl::DeadlineExceededError("no answer in time"));
    });
    if (network_->Draw(network_->faults_.repeat)) {
      ++network_->counts_.repeated;
      Send(method, request, attempt);
    }
    Send(method, std::move(request), attempt);
  }

 private:
  const SimLoop::Owner* owner() const { return from_ == nullptr ? nullptr : from_->owner(); }

  void Send(const rpc::Method& method, rpc::Message request, std::shared_ptr<Attempt> attempt) {
    if (network_->Draw(network_->faults_.unavailable)) {
      Deliver(Unavailable("the connection broke before the request was sent"), std::move(attempt));
      return;
    }
    if (network_->Draw(network_->faults_.lose)) {
      ++network_->counts_.lost;
      return;
    }
    // A request in flight has no owner: it arrives even if its sender has died.
    network_->loop_->PostAfter(network_->DrawDelayUs(),
                               [this, method, request = std::move(request), attempt]() mutable {
                                 Arrive(method, std::move(request), std::move(attempt));
                               });
  }

  void Arrive(const rpc::Method& method, rpc::Message request, std::shared_ptr<Attempt> attempt) {
    const SimNetwork::Listener* listener = network_->Resolve(to_, from_, &connected_to_);
    if (listener == nullptr) {
      ++network_->counts_.to_nobody;
      if (network_->Draw(0.5)) Deliver(Unavailable("nobody listens there"), std::move(attempt));
      return;
    }
    SimProcess* process = listener->process;
    if (process != nullptr && process->stands_still()) {
      network_->loop_->PostAfterFor(process->owner(), 0,
                                    [this, method, request = std::move(request),
                                     attempt = std::move(attempt), listener = *listener]() mutable {
                                      Serve(listener, method, std::move(request),
                                            std::move(attempt));
                                    });
      return;
    }
    Serve(*listener, method, std::move(request), std::move(attempt));
  }

  void Serve(const SimNetwork::Listener& listener, const rpc::Method& method, rpc::Message request,
             std::shared_ptr<Attempt> attempt) {
    listener.handler->Handle(
        method, std::move(request),
        [this, method, attempt, process = listener.process](absl::StatusOr<rpc::Message> answer) {
          if (process != nullptr && !process->Acts()) return;
          if (answer.ok()) {
            const absl::Status size = network_->CheckSize("answer to", method, *answer);
            if (!size.ok()) answer = size;
          }
          Answer(std::move(answer), attempt);
        });
  }

  void Answer(absl::StatusOr<rpc::Message> answer, std::shared_ptr<Attempt> attempt) {
    if (network_->Draw(network_->faults_.lose)) {
      ++network_->counts_.lost;
      return;
    }
    // If the answer becomes this error, the receiver has run the call, but the sender cannot know
    // that.
    if (network_->Draw(network_->faults_.unavailable)) {
      answer = Unavailable("the connection broke before the answer came");
    }
    Deliver(std::move(answer), std::move(attempt));
  }

  absl::Status Unavailable(absl::string_view what) {
    ++network_->counts_.unavailable;
    return absl::UnavailableError(what);
  }

  void Deliver(absl::StatusOr<rpc::Message> answer, std::shared_ptr<Attempt> attempt) {
    network_->loop_->PostAfterFor(
        owner(), network_->DrawDelayUs(),
        [attempt, answer = std::move(answer)]() mutable { attempt->Finish(std::move(answer)); });
  }

  SimNetwork* const network_;
  const SimNetwork::Address to_;
  SimProcess* const from_;
  SimProcess* connected_to_ = nullptr;
};

SimNetwork::Address SimNetwork::NewAddress() {
  listeners_.emplace_back();
  return static_cast<Address>(listeners_.size()) - 1;
}

void SimNetwork::Listen(Address address, SimProcess* process, rpc::Handler* handler) {
  listeners_[address].push_back({process, handler});
}

std::unique_ptr<rpc::Channel> SimNetwork::Connect(Address to, SimProcess* from) {
  CHECK(to >= 0 && to < static_cast<Address>(listeners_.size()));
  return std::make_unique<SimChannel>(this, to, from);
}

const SimNetwork::Listener* SimNetwork::Resolve(Address address, SimProcess* from,
                                                SimProcess** connected_to) {
  const int life = from == nullptr ? 0 : from->life();
  const auto is_reached = [life](const Listener& listener) {
    return listener.process == nullptr ||
           (listener.process->alive() && listener.process->life() >= life);
  };
  const std::vector<Listener>& all = listeners_[address];
  const auto reached = static_cast<uint64_t>(std::count_if(all.begin(), all.end(), is_reached));
  if (reached == 0) return nullptr;
  // Nearly always exactly one process can be reached. In this case nothing is drawn, so that the
  // draws of worlds without deaths do not change.
  uint64_t left = reached == 1 ? 0 : loop_->random()->Below(reached);
  if (reached > 1 && *connected_to != nullptr &&
      loop_->random()->Below(kRequestsOfAConnection) > 0) {
    for (const Listener& listener : all) {
      if (is_reached(listener) && listener.process == *connected_to) return &listener;
    }
  }
  for (const Listener& listener : all) {
    if (!is_reached(listener) || left-- > 0) continue;
    if (from != nullptr && listener.process != nullptr && listener.process->life() > life) {
      ++counts_.to_the_next;
    }
    *connected_to = listener.process;
    return &listener;
  }
  return nullptr;
}

absl::Status SimNetwork::CheckSize(absl::string_view kind, const rpc::Method& method,
                                   const rpc::Message& message) const {
  if (max_message_bytes_ == 0 || !method.bulk) return absl::OkStatus();
  return rpc::CheckFrameSize(kind, method, message, max_message_bytes_);
}

int64_t SimNetwork::DrawDelayUs() {
  if (Draw(faults_.very_late)) {
    ++counts_.very_late;
    return static_cast<int64_t>(loop_->random()->Below(faults_.very_late_max_us));
  }
  return static_cast<int64_t>(loop_->random()->Below(faults_.delay_max_us));
}

}  // namespace satrap::simulation
