#include "nn_worker/device/dry_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>

namespace satrap {
namespace {

constexpr int64_t kAlignment = 64;
// No process has memory at this address, because user space ends at 2^47.
constexpr int64_t kFirstAddress = int64_t{1} << 48;

class DryMemory final : public Memory {
 public:
  DryMemory(int64_t address, int64_t bytes) : address_(address), bytes_(bytes) {}
  void* data() const override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address that nobody may follow
    return reinterpret_cast<void*>(address_);
  }
  int64_t bytes() const override { return bytes_; }

 private:
  const int64_t address_;
  const int64_t bytes_;
};

class PinnedMemory final : public Memory {
 public:
  explicit PinnedMemory(int64_t bytes)
      : data_(::operator new (static_cast<size_t>(std::max<int64_t>(bytes, 1)),
                              std::align_val_t{kAlignment})),
        bytes_(bytes) {}
  ~PinnedMemory() override { ::operator delete (data_, std::align_val_t{kAlignment}); }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  void* const data_;
  const int64_t bytes_;
};

class DryEvent final : public Event {
 public:
  absl::StatusOr<bool> Poll() override { return true; }
};

class DryStream final : public DeviceStream {
 public:
  void CopyIn(const void*, void*, int64_t) override {}
  void CopyOut(const void*, void* pinned, int64_t bytes) override {
    if (bytes > 0) std::memset(pinned, 0, static_cast<size_t>(bytes));
  }
  void CopyWithin(const void*, void*, int64_t) override {}
  void Launch(const KernelLaunch&) override {}
  void Record(Event*) override {}
  void WaitFor(Event*) override {}
};

class DryGraph final : public StreamGraph {
 public:
  void Launch(DeviceStream*) override {}
};

class DryDevice final : public Device {
 public:
  absl::StatusOr<DeviceRoom> Room() override {
    const int64_t unbounded = std::numeric_limits<int64_t>::max();
    return DeviceRoom{"the device without memory", unbounded, unbounded};
  }
  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    const int64_t rounded = (bytes + kAlignment) / kAlignment * kAlignment;
    return std::make_unique<DryMemory>(next_.fetch_add(rounded), bytes);
  }
  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) override {
    return std::make_unique<PinnedMemory>(bytes);
  }
  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override {
    return std::make_unique<DryStream>();
  }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    return std::make_unique<DryEvent>();
  }
  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream*,
                                                       absl::FunctionRef<void()> enqueue) override {
    enqueue();
    return std::make_unique<DryGraph>();
  }

 private:
  std::atomic<int64_t> next_{kFirstAddress};
};

}  // namespace

std::unique_ptr<Device> NewDryDevice() { return std::make_unique<DryDevice>(); }

}  // namespace satrap
