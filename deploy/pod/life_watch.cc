#include "deploy/pod/life_watch.h"

#include <algorithm>

namespace satrap {

void LifeWatch::OnWake(int64_t now_ms) {
  // If more than two ticks have passed, this process was suspended for the rest of that time.
  silent_ms_ += std::clamp<int64_t>(now_ms - woke_ms_, 0, 2 * kTickMs);
  woke_ms_ = now_ms;
}

void LifeWatch::OnSign() {
  has_signed_ = true;
  silent_ms_ = 0;
}

}  // namespace satrap
