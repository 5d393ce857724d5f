// The memory of a DeviceBackend, its queues, and its copies from and to the host:
//
//   - the streams of the three queues (device_memory.h);
//   - copies of the operations' queue, which go through a ring of pinned memory, so that the host's
//     memory need not be pinned. Bytes copied out reach the host's memory when an event is polled.
//     The few bytes that a step copies in are the argument of a kernel (store_bytes.h);
//   - scratch memory of an operation;
//   - tables that kernels read (device_tables.h);
//   - an additional stream, which belongs to none of the queues.
//
// If scratch, table or ring memory runs out, a CHECK fails, because operations return no error.
// Callers that know what they will need reserve it in advance.
// Threads: as device_memory.h says.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TRANSFERS_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TRANSFERS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/thread/mutex.h"
#include "nn_worker/backend/device/device_tables.h"
#include "nn_worker/backend/device_memory.h"
#include "nn_worker/backend/device_pinned_memory.h"
#include "nn_worker/backend/tensor.h"
#include "nn_worker/device/metered_device.h"

namespace satrap {

class DeviceTransfers {
 public:
  // `meter` counts the copies. INTERNAL if the device refuses a stream or an event.
  static absl::StatusOr<std::unique_ptr<DeviceTransfers>> Create(
      std::shared_ptr<Device> device, std::shared_ptr<DeviceMeter> meter);
  // Waits until everything enqueued has run.
  ~DeviceTransfers();

  // Only the thread that uses the queue may call this.
  DeviceStream* stream(DeviceQueue queue = DeviceQueue::kOperations) {
    // Captured operations use only memory that earlier operations have used. So this queue has
    // already waited until that memory was zeroed.
    if (queue == DeviceQueue::kOperations && capturing_) return streams_[0].get();
    if (zeroings_.load(std::memory_order_acquire) != awaited_[static_cast<int>(queue)]) {
      AwaitZeroing(queue);
    }
    return streams_[static_cast<int>(queue)].get();
  }

  // As in device_memory.h.
  absl::StatusOr<void*> Allocate(int64_t bytes);
  const std::shared_ptr<DevicePinnedMemory>& pinned() const { return pinned_; }
  DeviceMeter* meter() const { return meter_.get(); }
  void CopyIn(absl::Span<const uint8_t> host, const Tensor& device);
  void CopyOut(const Tensor& device, absl::Span<uint8_t> host);
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent();
  void Record(DeviceQueue queue, BackendEvent* event);
  void WaitFor(DeviceQueue queue, BackendEvent* event);
  absl::StatusOr<bool> Poll(BackendEvent* event);
  void Sync();

  // Makes the scratch memory at least this large. Any thread may call it. RESOURCE_EXHAUSTED.
  absl::Status ReserveScratch(int64_t bytes);
  // As ReserveScratch, but for sizes that differ from part to part: if the memory must grow, its
  // size at least doubles, where there is room.
  absl::Status GrowScratch(int64_t bytes);
  // Allocates the memory that the tables need, before the first operation. RESOURCE_EXHAUSTED.
  absl::Status ReserveTables(int64_t table_bytes, int64_t part_table_bytes);
  // Device memory for `count` values, aligned to 64 bytes. Operations may use it if they are
  // enqueued before the next call of this function or of a copy, which may hand out the same memory
  // again.
  template <typename T>
  T* Scratch(int64_t count) {
    return static_cast<T*>(ScratchBytes(count * static_cast<int64_t>(sizeof(T))));
  }
  // Lists of the network's operations, which are the same in every step.
  DeviceTables* tables() { return &tables_; }
  // Lists of the exchange with embedding rows. They differ from part to part. If both kinds of
  // lists were kept in the same memory, the lists of parts would displace those of the network.
  DeviceTables* part_tables() { return &part_tables_; }

  // As in device_memory.h.
  absl::Status EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                             BackendEvent* done);
  absl::StatusOr<std::unique_ptr<OperationGraph>> Capture(
      absl::FunctionRef<absl::Status()> enqueue);
  void Enqueue(OperationGraph* graph);

 private:
  // A copy that uses bytes [begin, end) of the ring until `done` has happened.
  struct RingCopy {
    std::unique_ptr<Event> done;
    int64_t begin, end;
    absl::Span<uint8_t> host;  // gets the bytes; empty for a copy in
  };

  DeviceTransfers(std::shared_ptr<Device> device, std::shared_ptr<DeviceMeter> meter);
  DeviceTables NewTables(ListKind kind);
  void* ScratchBytes(int64_t bytes);
  absl::Status TakeScratch(int64_t bytes) REQUIRES(scratch_mutex_);
  absl::StatusOr<void*> AllocateDevice(int64_t bytes);
  void AwaitZeroing(DeviceQueue queue);
  void CopyToDevice(const void* host, void* device, int64_t bytes);
  // Finds room for a copy in the ring, and waits if there is none.
  int64_t ReserveRing(int64_t bytes) REQUIRES(mutex_);
  bool FitsRing(int64_t bytes, int64_t* begin) const REQUIRES(mutex_);
  // Marks the end of a copy that was enqueued just now.
  void AddRingCopy(int64_t begin, int64_t bytes, absl::Span<uint8_t> host) REQUIRES(mutex_);
  // Copies the bytes of finished copies out to the host's memory.
  void Deliver() REQUIRES(mutex_);

  const std::shared_ptr<Device> device_;
  const std::shared_ptr<DeviceMeter> meter_;
  const std::shared_ptr<DevicePinnedMemory> pinned_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Memory>> memory_ GUARDED_BY(mutex_);
  std::unique_ptr<DeviceStream> streams_[3];
  std::unique_ptr<Event> ends_[3];  // of the queues, for Sync
  // Zeroes allocated memory on a separate stream, because other threads use the queues. A queue
  // waits for the zeroing when it is used again.
  Mutex zeroing_mutex_;
  std::unique_ptr<DeviceStream> zeroing_ GUARDED_BY(zeroing_mutex_);
  std::unique_ptr<Event> zeroed_ GUARDED_BY(zeroing_mutex_);
  std::atomic<int64_t> zeroings_{0};
  int64_t awaited_[3] = {0, 0, 0};  // of the thread of each queue

  uint8_t* ring_ GUARDED_BY(mutex_) = nullptr;
  int64_t ring_bytes_ GUARDED_BY(mutex_) = 0;
  std::deque<RingCopy> ring_copies_ GUARDED_BY(mutex_);  // in order
  std::vector<std::unique_ptr<Event>> idle_events_ GUARDED_BY(mutex_);
  Mutex scratch_mutex_;
  void* scratch_ GUARDED_BY(scratch_mutex_) = nullptr;
  int64_t scratch_bytes_ GUARDED_BY(scratch_mutex_) = 0;
  bool capturing_ = false;  // true only in the thread of the operations
  DeviceTables tables_, part_tables_;
  std::unique_ptr<DeviceStream> beside_;
  std::unique_ptr<Event> operations_so_far_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TRANSFERS_H_
