#include "nn_worker/backend/device/device_room.h"

#include "absl/strings/str_cat.h"

namespace satrap {
namespace {

constexpr char kSmaller[] = "a smaller global_batch_size, more NN workers or a smaller model";

}  // namespace

absl::Status CheckDeviceRoom(const DeviceNeed& need, const DeviceRoom& room) {
  if (need.bytes > room.total_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat(room.device, " has ", room.total_bytes,
                     " bytes of memory in all, but each NN worker needs ", need.text,
                     ": use a device with more memory, ", kSmaller));
  }
  if (need.bytes > room.free_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "only ", room.free_bytes, " of the ", room.total_bytes, " bytes of ", room.device,
        " are free, but each NN worker needs ", need.text, ": end other programs on it, or use ",
        kSmaller, "; the driver and CUDA's libraries take some hundred MB of a card"));
  }
  return absl::OkStatus();
}

}  // namespace satrap
