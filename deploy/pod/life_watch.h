// Decides whether a role stands still for good, by the signs of life that it gives
// (common/life/life_sign.h).
//
// A role is silent after 12 s without a sign. One that has just been started has 60 s for its first
// sign: a program and its libraries may come from a slow disk. Time in which the supervisor itself
// stood still does not count, because the role mostly stood still with it and can give a sign only
// afterwards: as when all processes of a container are stopped, or the machine is.
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
  // How often it must be asked: OnWake at least.
  static constexpr int kTickMs = 1000;

  // The role is started at `now_ms`. All times are MonotonicMs.
  LifeWatch(const LifeLimits& limits, int64_t now_ms) : limits_(limits), woke_ms_(now_ms) {}

  // The supervisor has waited, for kTickMs at most. Call this before OnSign for the signs that have
  // come meanwhile.
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
