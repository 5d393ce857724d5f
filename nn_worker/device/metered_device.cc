#include "nn_worker/device/metered_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/device/delegating_device.h"

namespace satrap {
namespace {

class MeteredMemory final : public Memory {
 public:
  MeteredMemory(std::unique_ptr<Memory> memory, std::shared_ptr<DeviceMeter> meter, bool pinned)
      : memory_(std::move(memory)), meter_(std::move(meter)), pinned_(pinned) {}
  ~MeteredMemory() override {
    const int64_t bytes = memory_->bytes();
    pinned_ ? meter_->GiveBackPinned(bytes) : meter_->GiveBack(bytes);
  }
  void* data() const override { return memory_->data(); }
  int64_t bytes() const override { return memory_->bytes(); }

 private:
  const std::unique_ptr<Memory> memory_;
  const std::shared_ptr<DeviceMeter> meter_;
  const bool pinned_;
};

class MeteredDevice final : public DelegatingDevice {
 public:
  MeteredDevice(std::unique_ptr<Device> device, std::shared_ptr<DeviceMeter> meter)
      : DelegatingDevice(std::move(device)), meter_(std::move(meter)) {}

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    // This is done under a lock, because two threads that allocate at the same time must not both
    // get the last free bytes.
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(meter_->CheckRoom(bytes));
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, DelegatingDevice::Allocate(bytes));
    meter_->Take(bytes);
    return std::make_unique<MeteredMemory>(std::move(memory), meter_, /*pinned=*/false);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, DelegatingDevice::AllocatePinned(bytes));
    meter_->TakePinned(bytes);
    return std::make_unique<MeteredMemory>(std::move(memory), meter_, /*pinned=*/true);
  }

 private:
  const std::shared_ptr<DeviceMeter> meter_;
  Mutex mutex_;
};

}  // namespace

DeviceMeter::Reading DeviceMeter::Read() const {
  MutexLock lock(&mutex_);
  return reading_;
}

void DeviceMeter::CountCopyIn(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.copied_in_bytes += bytes;
}

void DeviceMeter::CountCopyOut(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.copied_out_bytes += bytes;
}

void DeviceMeter::CountScratch(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.scratch_bytes += bytes;
}

void DeviceMeter::NoteScratchUse(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.most_scratch_bytes = std::max(reading_.most_scratch_bytes, bytes);
}

void DeviceMeter::CountLists(ListKind kind, int64_t bytes, int64_t held_bytes) {
  MutexLock lock(&mutex_);
  reading_.list_bytes += bytes;
  (kind == ListKind::kNetwork ? reading_.network_list_bytes : reading_.part_list_bytes) =
      held_bytes;
}

void DeviceMeter::CountGraphLaunch() {
  MutexLock lock(&mutex_);
  ++reading_.graph_launches;
}

absl::Status DeviceMeter::CheckRoom(int64_t bytes) const {
  MutexLock lock(&mutex_);
  if (limit_bytes_ == 0 || bytes <= limit_bytes_ - reading_.bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("nn_worker.device_memory_bytes is ", limit_bytes_, ", of which ", reading_.bytes,
                   " are in use, and ", bytes,
                   " more are needed: raise it, or use a smaller global_batch_size, more NN "
                   "workers or a smaller model"));
}

void DeviceMeter::Take(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.bytes += bytes;
  reading_.peak_bytes = std::max(reading_.peak_bytes, reading_.bytes);
}

void DeviceMeter::GiveBack(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.bytes -= bytes;
}

void DeviceMeter::TakePinned(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.pinned_bytes += bytes;
}

void DeviceMeter::GiveBackPinned(int64_t bytes) {
  MutexLock lock(&mutex_);
  reading_.pinned_bytes -= bytes;
}

std::unique_ptr<Device> NewMeteredDevice(std::unique_ptr<Device> device,
                                         std::shared_ptr<DeviceMeter> meter) {
  return std::make_unique<MeteredDevice>(std::move(device), std::move(meter));
}

}  // namespace satrap
