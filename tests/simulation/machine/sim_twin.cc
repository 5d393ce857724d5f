#include "tests/simulation/machine/sim_twin.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kSilenceUs = 3 * 1000 * 1000;
constexpr int64_t kPauseUs = 20 * 1000;
constexpr int kTries = 100;

}  // namespace

SimTwin::SimTwin(const Options& options, const SimMember* member, SimLoop* loop,
                 SimNetwork* network, SimNetwork::Address coordinator)
    : options_(options),
      member_(member),
      process_(loop, options.life, absl::StrCat("a second process of life ", options.life)),
      channel_(network->Connect(coordinator, &process_)) {
  SimMember::Options own;
  own.registration = options.registration;
  own.process = &process_;
  own.coordinator = channel_.get();
  own.starting_period_ms = options.starting_period_ms;
  own.fails_unheard = options.fails;
  SimMember::Events events;
  events.registered = [this](const RegisterAnswer&) {
    // No restart would cure this failure, if it were a member's.
    if (options_.fails) own_->Fail(absl::UnimplementedError("the address is in use"));
  };
  events.joined = [] {};
  own_ = std::make_unique<SimMember>(own, std::move(events));
  process_.PostAfter(options.starts_after_us, [this] { Start(kTries); });
}

void SimTwin::Start(int tries) {
  if (options_.fails && !member_->is_heard()) {
    if (tries > 0) process_.PostAfter(kPauseUs, [this, tries] { Start(tries - 1); });
    return;
  }
  own_->Start();
  process_.PostAfter(options_.dies_after_us, [this] { process_.Kill(); });
}

void SimSilence::OnBeat(Role role, int index, int64_t now_us) {
  const auto [last, is_first] = last_us_.try_emplace({role, index}, now_us);
  has_been_ |= !is_first && now_us - last->second > kSilenceUs;
  last->second = now_us;
}

bool SimSilence::HasBeen(int64_t now_us) const {
  bool is = has_been_;
  for (const auto& [place, last_us] : last_us_) is |= now_us - last_us > kSilenceUs;
  return is;
}

}  // namespace satrap::simulation
