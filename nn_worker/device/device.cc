#include "nn_worker/device/device.h"

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/thread/clock.h"

namespace satrap {

absl::Status Device::BeginTrace() {
  return absl::UnimplementedError("this device measures no times of operations");
}

absl::StatusOr<std::vector<TracedOperation>> Device::EndTrace() { return BeginTrace(); }

absl::Status WaitForEvent(Event* event, int64_t timeout_ms, absl::FunctionRef<bool()> aborted) {
  const int64_t deadline_us = MonotonicUs() + timeout_ms * 1000;
  for (;;) {
    ASSIGN_OR_RETURN(const bool happened, event->Poll());
    if (happened) return absl::OkStatus();
    if (aborted()) return absl::CancelledError("the wait for the device was aborted");
    if (MonotonicUs() >= deadline_us) {
      return absl::DeadlineExceededError(
          absl::StrCat("the device has not finished its work within ", timeout_ms, " ms"));
    }
    // A step's work takes milliseconds, but a poll takes under a microsecond. So between two polls,
    // other threads of the role get the core.
    std::this_thread::yield();
  }
}

}  // namespace satrap
