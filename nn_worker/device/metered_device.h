// Counts a device's memory and copies (DeviceMeter), and keeps a device's allocations within a
// limit (NewMeteredDevice).
//
// Counts are of requested bytes. A card rounds requests up, and its driver uses additional memory.
//
// DeviceMeter is thread-safe; for the device's thread safety see device.h.

#ifndef SATRAP_NN_WORKER_DEVICE_METERED_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_METERED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/device.h"

namespace satrap {

// The two kinds of lists that operations read. Lists of the network are the same in every step;
// lists of the exchange with embedding rows differ from part to part.
enum class ListKind { kNetwork, kPart };

class DeviceMeter {
 public:
  struct Reading {
    int64_t bytes = 0;         // of device memory in use
    int64_t peak_bytes = 0;    // the most so far
    int64_t pinned_bytes = 0;  // of the host's memory in use
    int64_t copied_in_bytes = 0;
    int64_t copied_out_bytes = 0;
    // scratch_bytes: the part of `bytes` that a backend uses as scratch memory of operations.
    // most_scratch_bytes: the most that one operation requested.
    int64_t scratch_bytes = 0;
    int64_t most_scratch_bytes = 0;
    // list_bytes: the part of `bytes` that was allocated for lists that operations read, including
    // outgrown memory. network_list_bytes and part_list_bytes: the memory that the lists of each
    // kind use now.
    int64_t list_bytes = 0;
    int64_t network_list_bytes = 0;
    int64_t part_list_bytes = 0;
    int64_t graph_launches = 0;  // of captured passes and their parts
  };

  // The limit of device memory is the job's nn_worker.device_memory_bytes; 0 means no limit.
  explicit DeviceMeter(int64_t limit_bytes = 0) : limit_bytes_(limit_bytes) {}

  Reading Read() const;
  void CountCopyIn(int64_t bytes);
  void CountCopyOut(int64_t bytes);
  // Called by backends, which know what their allocations are for.
  void CountScratch(int64_t bytes);
  void NoteScratchUse(int64_t bytes);
  // Counts another `bytes` bytes allocated for lists of this kind, which use `held_bytes` bytes
  // from now on.
  void CountLists(ListKind kind, int64_t bytes, int64_t held_bytes);
  void CountGraphLaunch();

  // Checks the limit of device memory. RESOURCE_EXHAUSTED, naming the job's field, if another
  // `bytes` bytes would exceed it.
  absl::Status CheckRoom(int64_t bytes) const;
  void Take(int64_t bytes);
  void GiveBack(int64_t bytes);
  void TakePinned(int64_t bytes);
  void GiveBackPinned(int64_t bytes);

 private:
  const int64_t limit_bytes_;
  mutable Mutex mutex_;
  Reading reading_ GUARDED_BY(mutex_);
};

// Wraps `device`: `meter` counts its allocations, and Allocate fails beyond the meter's limit.
// Streams and events are those of `device`.
std::unique_ptr<Device> NewMeteredDevice(std::unique_ptr<Device> device,
                                         std::shared_ptr<DeviceMeter> meter);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_METERED_DEVICE_H_
