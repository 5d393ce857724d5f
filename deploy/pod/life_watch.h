// Decides whether a role hangs for good, from the signs of life that it gives
// (common/life/life_sign.h).
//
// A role is silent if it has given no sign for 12 s. A role that has just been started has 60 s for
// its first sign, because its program and libraries may come from a slow disk. The time for which
// the supervisor itself was suspended does not count: the role was mostly suspended, too, and can
// give a sign only afterwards. This happens if all processes of a container are stopped, or the
// machine is.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_POD_LIFE_WATCH_H_
#define SATRAP_DEPLOY_POD_LIFE_WATCH_H_

#include <cstdint>

namespace satrap {

struct LifeLimits {
  int64_t silence_ms = 12000;
  int64_t first_sign_ms = 60000;
};

class LifeWatch {
 public:
  // OnWake must be called at least this often.
  static constexpr int kTickMs = 1000;

  // The role is started at `now_ms`. All times are MonotonicMs.
  LifeWatch(const LifeLimits& limits, int64_t now_ms) : limits_(limits), woke_ms_(now_ms) {}

  // Call after each wait of the supervisor, which lasts kTickMs at most, and before OnSign for the
  // signs that have come meanwhile.
  void OnWake(int64_t now_ms);
  void OnSign();
  bool IsSilent() const { return silent_ms_ >= LimitMs(); }
  // How long the role may be silent.
  int64_t LimitMs() const { return has_signed_ ? limits_.silence_ms : limits_.first_sign_ms; }

 private:
  const LifeLimits limits_;
  int64_t woke_ms_;
  int64_t silent_ms_ = 0;
  bool has_signed_ = false;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_POD_LIFE_WATCH_H_
