#include "tests/simulation/sim_network.h"

#include <utility>

namespace satrap::simulation {

// One attempt of a call. Shared by its deliveries and its deadline: the first to come runs `done`.
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
  SimChannel(SimNetwork* network, rpc::Handler* handler) : network_(network), handler_(handler) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    ++network_->counts_.calls;
    auto attempt = std::make_shared<Attempt>();
    attempt->done = std::move(done);
    network_->loop_->PostAfter(timeout_ms * 1000, [attempt] {
      attempt->Finish(absl::DeadlineExceededError("no answer in time"));
    });
    if (network_->Draw(network_->faults_.repeat)) {
      ++network_->counts_.repeated;
      Send(method, request, attempt);
    }
    Send(method, std::move(request), attempt);
  }

 private:
  void Send(const rpc::Method& method, rpc::Message request, std::shared_ptr<Attempt> attempt) {
    if (network_->Draw(network_->faults_.unavailable)) {
      Deliver(Unavailable("the connection broke before the request was sent"), std::move(attempt));
      return;
    }
    if (network_->Draw(network_->faults_.lose)) {
      ++network_->counts_.lost;
      return;
    }
    network_->loop_->PostAfter(
        network_->DrawDelayUs(), [this, method, request = std::move(request), attempt]() mutable {
          handler_->Handle(method, std::move(request),
                           [this, attempt](absl::StatusOr<rpc::Message> answer) {
                             Answer(std::move(answer), attempt);
                           });
        });
  }

  void Answer(absl::StatusOr<rpc::Message> answer, std::shared_ptr<Attempt> attempt) {
    if (network_->Draw(network_->faults_.lose)) {
      ++network_->counts_.lost;
      return;
    }
    // The receiver has run the call, and the sender cannot know it.
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
    network_->loop_->PostAfter(
        network_->DrawDelayUs(),
        [attempt, answer = std::move(answer)]() mutable { attempt->Finish(std::move(answer)); });
  }

  SimNetwork* const network_;
  rpc::Handler* const handler_;
};

std::unique_ptr<rpc::Channel> SimNetwork::Connect(rpc::Handler* handler) {
  return std::make_unique<SimChannel>(this, handler);
}

int64_t SimNetwork::DrawDelayUs() {
  if (Draw(faults_.very_late)) {
    ++counts_.very_late;
    return static_cast<int64_t>(loop_->random()->Below(faults_.very_late_max_us));
  }
  return static_cast<int64_t>(loop_->random()->Below(faults_.delay_max_us));
}

}  // namespace satrap::simulation
