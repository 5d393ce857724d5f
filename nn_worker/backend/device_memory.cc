#include "nn_worker/backend/device_memory.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {

// Most waits are short, so the thread yields at first. Soon it sleeps instead, because a thread
// that keeps yielding would take a core from threads that compute.
absl::Status AwaitEvent(DeviceMemory* device, BackendEvent* event, int64_t timeout_ms,
                        absl::FunctionRef<bool()> aborted) {
  constexpr int kYields = 64;
  constexpr std::chrono::microseconds kPause(20);
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  for (int round = 0;; ++round) {
    ASSIGN_OR_RETURN(const bool happened, device->Poll(event));
    if (happened) return absl::OkStatus();
    if (aborted()) return absl::CancelledError("the wait for the device was aborted");
    // Compares durations: adding the largest timeout to a time point would overflow.
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (waited.count() >= timeout_ms) {
      return absl::DeadlineExceededError(
          absl::StrCat("the device has not finished in ", timeout_ms, " ms"));
    }
    if (round < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
}

absl::StatusOr<std::unique_ptr<OperationGraph>> DeviceMemory::Capture(
    absl::FunctionRef<absl::Status()> /*enqueue*/) {
  return absl::UnimplementedError("this backend does not support graphs");
}

void DeviceMemory::Enqueue(OperationGraph* /*graph*/) {
  CHECK(false) << "this backend does not support graphs";
}

absl::Status DeviceMemory::EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> /*enqueue*/,
                                         BackendEvent* /*done*/) {
  return absl::UnimplementedError("this backend has no device streams");
}

}  // namespace satrap
