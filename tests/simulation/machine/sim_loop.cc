#include "tests/simulation/machine/sim_loop.h"

#include <utility>

namespace satrap::simulation {
namespace {

// Tasks posted one after another may run in either order, as on a pool of threads.
constexpr uint64_t kPostJitterUs = 5;

}  // namespace

void SimLoop::PostFor(const Owner* owner, Task task) {
  PostAfterFor(owner, static_cast<int64_t>(random_.Below(kPostJitterUs)), std::move(task));
}

void SimLoop::PostAfterFor(const Owner* owner, int64_t delay_us, Task task) {
  queue_.push(
      Event{now_us_ + (delay_us < 0 ? 0 : delay_us), random_.Next(), owner, std::move(task)});
}

bool SimLoop::RunUntil(const std::function<bool()>& done, int64_t limit_us, int64_t max_events) {
  while (!done()) {
    if (queue_.empty() || now_us_ > limit_us || events_ >= max_events) return false;
    const Owner* owner = queue_.top().owner;
    Task task = std::move(queue_.top().task);
    now_us_ = queue_.top().at_us;
    queue_.pop();
    ++events_;
    if (owner != nullptr && owner->dead) continue;
    if (owner != nullptr && owner->stands_until_us > now_us_) {
      PostAfterFor(owner, owner->stands_until_us - now_us_, std::move(task));
      continue;
    }
    task();
  }
  return true;
}

}  // namespace satrap::simulation
