#include "nn_worker/backend/device/device_transfers.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/device/kernels/copy_rows.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/store_bytes.h"

namespace satrap {
namespace {

// The timeout of waits for which callers give none. It is reached only if the device hangs.
constexpr int64_t kHangTimeoutMs = 600000;
constexpr int64_t kFirstRingBytes = 1 << 20;

// The rows of a tensor, as bytes.
template <typename Byte>
ByteRows<Byte> RowsOf(const Tensor& tensor) {
  return {static_cast<Byte*>(tensor.data), tensor.stride * DTypeBytes(tensor.dtype)};
}

void CheckSize(size_t bytes, const Tensor& device) {
  CHECK(static_cast<int64_t>(bytes) == device.size_bytes())
      << bytes << " bytes for a tensor of " << device.size_bytes();
}

void AwaitOrDie(Event* event) {
  CHECK_OK(WaitForEvent(event, kHangTimeoutMs, [] { return false; }));
}

class DeviceEvent final : public BackendEvent {
 public:
  explicit DeviceEvent(std::unique_ptr<Event> event) : event_(std::move(event)) {}
  Event* get() const { return event_.get(); }

 private:
  const std::unique_ptr<Event> event_;
};

class DeviceGraph final : public OperationGraph {
 public:
  DeviceGraph(std::unique_ptr<StreamGraph> graph, int64_t epoch)
      : graph_(std::move(graph)), epoch_(epoch) {}
  StreamGraph* get() const { return graph_.get(); }
  int64_t epoch() const { return epoch_; }

 private:
  const std::unique_ptr<StreamGraph> graph_;
  const int64_t epoch_;
};

Event* EventOf(BackendEvent* event) { return static_cast<DeviceEvent*>(event)->get(); }

}  // namespace

DeviceTransfers::DeviceTransfers(std::shared_ptr<Device> device, std::shared_ptr<DeviceMeter> meter)
    : device_(std::move(device)),
      meter_(std::move(meter)),
      pinned_(std::make_shared<DevicePinnedMemory>(device_)),
      tables_(NewTables(ListKind::kNetwork)),
      part_tables_(NewTables(ListKind::kPart)) {}

DeviceTables DeviceTransfers::NewTables(ListKind kind) {
  return DeviceTables(
      kind, [this](int64_t bytes) { return AllocateDevice(bytes); },
      [this](const void* host, void* device, int64_t bytes) { CopyToDevice(host, device, bytes); },
      meter_.get());
}

absl::StatusOr<std::unique_ptr<DeviceTransfers>> DeviceTransfers::Create(
    std::shared_ptr<Device> device, std::shared_ptr<DeviceMeter> meter) {
  std::unique_ptr<DeviceTransfers> transfers(
      new DeviceTransfers(std::move(device), std::move(meter)));
  Device* const of = transfers->device_.get();
  for (std::unique_ptr<DeviceStream>& stream : transfers->streams_) {
    ASSIGN_OR_RETURN(stream, of->NewStream());
  }
  {
    MutexLock lock(&transfers->zeroing_mutex_);
    ASSIGN_OR_RETURN(transfers->zeroing_, of->NewStream());
    ASSIGN_OR_RETURN(transfers->zeroed_, of->NewEvent());
  }
  // These events are made last: the destructor calls Sync only if they exist, and Sync needs all of
  // the above.
  for (std::unique_ptr<Event>& end : transfers->ends_) {
    ASSIGN_OR_RETURN(end, of->NewEvent());
  }
  return transfers;
}

DeviceTransfers::~DeviceTransfers() {
  if (ends_[2] != nullptr) Sync();
}

absl::StatusOr<void*> DeviceTransfers::AllocateDevice(int64_t bytes) {
  ASSIGN_OR_RETURN(std::unique_ptr<Memory> memory, device_->Allocate(bytes));
  void* const data = memory->data();
  MutexLock lock(&mutex_);
  memory_.push_back(std::move(memory));
  return data;
}

absl::StatusOr<void*> DeviceTransfers::Allocate(int64_t bytes) {
  ASSIGN_OR_RETURN(void* const memory, AllocateDevice(bytes));
  MutexLock lock(&zeroing_mutex_);
  Fill(zeroing_.get(), MatrixOf(static_cast<uint8_t*>(memory), 1, bytes), 0);
  zeroing_->Record(zeroed_.get());
  zeroings_.fetch_add(1, std::memory_order_release);
  return memory;
}

void DeviceTransfers::AwaitZeroing(DeviceQueue queue) {
  MutexLock lock(&zeroing_mutex_);
  awaited_[static_cast<int>(queue)] = zeroings_.load(std::memory_order_relaxed);
  streams_[static_cast<int>(queue)]->WaitFor(zeroed_.get());
}

// The used range of the ring extends from the beginning of the first copy to the end of the last
// one, and may wrap around.
bool DeviceTransfers::FitsRing(int64_t bytes, int64_t* begin) const {
  *begin = 0;
  if (ring_copies_.empty()) return bytes <= ring_bytes_;
  const int64_t first = ring_copies_.front().begin, next = ring_copies_.back().end;
  *begin = next;
  // The used range wraps around, so the free room is between the last copy and the first. It must
  // not be filled completely, or a full ring would look like an empty one.
  if (next <= first) return next + bytes < first;
  if (next + bytes <= ring_bytes_) return true;
  *begin = 0;
  return bytes < first;
}

int64_t DeviceTransfers::ReserveRing(int64_t bytes) {
  bytes = PaddedBytes(bytes);
  int64_t begin = 0;
  for (;;) {
    Deliver();
    if (FitsRing(bytes, &begin)) return begin;
    if (!ring_copies_.empty()) {
      AwaitOrDie(ring_copies_.front().done.get());
      continue;
    }
    // The old ring is kept with the other pinned memory; rings grow only a few times, at the start.
    const int64_t wanted = std::max(kFirstRingBytes, 4 * bytes);
    auto block = pinned_->NewBlock(wanted);
    CHECK_OK(block.status());
    ring_ = *block;
    ring_bytes_ = wanted;
  }
}

void DeviceTransfers::AddRingCopy(int64_t begin, int64_t bytes, absl::Span<uint8_t> host) {
  if (idle_events_.empty()) {
    auto event = device_->NewEvent();
    CHECK_OK(event.status());
    idle_events_.push_back(std::move(event).value());
  }
  std::unique_ptr<Event> done = std::move(idle_events_.back());
  idle_events_.pop_back();
  stream()->Record(done.get());
  ring_copies_.push_back({std::move(done), begin, begin + PaddedBytes(bytes), host});
}

void DeviceTransfers::Deliver() {
  while (!ring_copies_.empty()) {
    RingCopy& copy = ring_copies_.front();
    const auto happened = copy.done->Poll();
    // An error of the device is not handled here: callers see it when they poll their own events.
    if (!happened.ok() || !*happened) return;
    if (!copy.host.empty()) {
      std::memcpy(copy.host.data(), ring_ + copy.begin, copy.host.size());
    }
    idle_events_.push_back(std::move(copy.done));
    ring_copies_.pop_front();
  }
}

void DeviceTransfers::CopyToDevice(const void* host, void* device, int64_t bytes) {
  CHECK(!capturing_) << "a copy of " << bytes << " bytes from the host cannot be captured";
  meter_->CountCopyIn(bytes);
  if (bytes <= kMostStoredBytes) return StoreBytes(stream(), host, bytes, device);
  MutexLock lock(&mutex_);
  const int64_t begin = ReserveRing(bytes);
  std::memcpy(ring_ + begin, host, bytes);
  stream()->CopyIn(ring_ + begin, device, bytes);
  AddRingCopy(begin, bytes, {});
}

void DeviceTransfers::CopyIn(absl::Span<const uint8_t> host, const Tensor& device) {
  CheckSize(host.size(), device);
  const auto bytes = static_cast<int64_t>(host.size());
  if (bytes == 0) return;
  if (!device.has_gaps()) return CopyToDevice(host.data(), device.data, bytes);
  // One copy and a kernel are faster than a copy for each row.
  auto* const packed = Scratch<uint8_t>(bytes);
  CopyToDevice(host.data(), packed, bytes);
  const int64_t row_bytes = device.cols * DTypeBytes(device.dtype);
  CopyRows(stream(), {packed, row_bytes}, RowsOf<uint8_t>(device), device.rows, row_bytes);
}

void DeviceTransfers::CopyOut(const Tensor& device, absl::Span<uint8_t> host) {
  CheckSize(host.size(), device);
  const auto bytes = static_cast<int64_t>(host.size());
  if (bytes == 0) return;
  CHECK(!capturing_) << "a copy of " << bytes << " bytes to the host cannot be captured";
  const void* from = device.data;
  if (device.has_gaps()) {
    auto* const packed = Scratch<uint8_t>(bytes);
    const int64_t row_bytes = device.cols * DTypeBytes(device.dtype);
    CopyRows(stream(), RowsOf<const uint8_t>(device), {packed, row_bytes}, device.rows, row_bytes);
    from = packed;
  }
  MutexLock lock(&mutex_);
  const int64_t begin = ReserveRing(bytes);
  meter_->CountCopyOut(bytes);
  stream()->CopyOut(from, ring_ + begin, bytes);
  AddRingCopy(begin, bytes, host);
}

absl::StatusOr<std::unique_ptr<BackendEvent>> DeviceTransfers::NewEvent() {
  ASSIGN_OR_RETURN(std::unique_ptr<Event> event, device_->NewEvent());
  return std::unique_ptr<BackendEvent>(std::make_unique<DeviceEvent>(std::move(event)));
}

void DeviceTransfers::Record(DeviceQueue queue, BackendEvent* event) {
  stream(queue)->Record(EventOf(event));
}

void DeviceTransfers::WaitFor(DeviceQueue queue, BackendEvent* event) {
  stream(queue)->WaitFor(EventOf(event));
}

absl::StatusOr<bool> DeviceTransfers::Poll(BackendEvent* event) {
  ASSIGN_OR_RETURN(const bool happened, EventOf(event)->Poll());
  if (happened) {
    MutexLock lock(&mutex_);
    Deliver();
  }
  return happened;
}

void DeviceTransfers::Sync() {
  for (const DeviceQueue queue :
       {DeviceQueue::kOperations, DeviceQueue::kCopiesIn, DeviceQueue::kCopiesOut}) {
    stream(queue)->Record(ends_[static_cast<int>(queue)].get());
  }
  for (const std::unique_ptr<Event>& end : ends_) AwaitOrDie(end.get());
  MutexLock lock(&mutex_);
  Deliver();
}

// Enqueued operations run in order, so an operation that overwrites the scratch memory of an
// earlier one runs after it. When a larger block is allocated, the smaller one is kept for
// operations that still use it.
void* DeviceTransfers::ScratchBytes(int64_t bytes) {
  if (capturing_) {
    MutexLock lock(&scratch_mutex_);
    CHECK(bytes <= scratch_bytes_ && scratch_ != nullptr)
        << "cannot allocate " << bytes << " bytes of scratch memory during a capture: only "
        << scratch_bytes_ << " bytes are allocated";
    return scratch_;
  }
  CHECK_OK(GrowScratch(bytes));
  MutexLock lock(&scratch_mutex_);
  return scratch_;
}

absl::Status DeviceTransfers::ReserveScratch(int64_t bytes) {
  MutexLock lock(&scratch_mutex_);
  meter_->NoteScratchUse(PaddedBytes(bytes));
  if (bytes <= scratch_bytes_ && scratch_ != nullptr) return absl::OkStatus();
  return TakeScratch(bytes);
}

absl::Status DeviceTransfers::GrowScratch(int64_t bytes) {
  MutexLock lock(&scratch_mutex_);
  meter_->NoteScratchUse(PaddedBytes(bytes));
  if (bytes <= scratch_bytes_ && scratch_ != nullptr) return absl::OkStatus();
  const absl::Status twofold = TakeScratch(std::max(bytes, 2 * scratch_bytes_));
  // This request does not need twice the size; doubling only saves later allocations. If there is
  // no room for twice the size, try the requested size.
  return absl::IsResourceExhausted(twofold) ? TakeScratch(bytes) : twofold;
}

absl::Status DeviceTransfers::TakeScratch(int64_t bytes) {
  const int64_t wanted = PaddedBytes(bytes);
  ASSIGN_OR_RETURN(scratch_, AllocateDevice(wanted));
  meter_->CountScratch(wanted);
  scratch_bytes_ = wanted;
  return absl::OkStatus();
}

absl::Status DeviceTransfers::ReserveTables(int64_t table_bytes, int64_t part_table_bytes) {
  RETURN_IF_ERROR(tables_.Reserve(table_bytes));
  return part_tables_.Reserve(part_table_bytes);
}

absl::StatusOr<std::unique_ptr<OperationGraph>> DeviceTransfers::Capture(
    absl::FunctionRef<absl::Status()> enqueue) {
  // Waits now for memory that is still being zeroed, because a stream cannot wait for it during the
  // capture.
  DeviceStream* const captured = stream();
  capturing_ = true;
  absl::Status status;
  auto graph = device_->Capture(captured, [&] { status = enqueue(); });
  capturing_ = false;
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(graph.status());
  return std::unique_ptr<OperationGraph>(
      std::make_unique<DeviceGraph>(*std::move(graph), tables_.epoch()));
}

void DeviceTransfers::Enqueue(OperationGraph* graph) {
  auto* const made = static_cast<DeviceGraph*>(graph);
  CHECK(made->epoch() == tables_.epoch()) << "the lists that the graph reads were overwritten";
  made->get()->Launch(stream());
  meter_->CountGraphLaunch();
}

// The stream is created when it is first needed, because few jobs need one. It is urgent, because
// other ranks wait for the work on it.
absl::Status DeviceTransfers::EnqueueBeside(absl::FunctionRef<absl::Status(DeviceStream*)> enqueue,
                                            BackendEvent* done) {
  if (beside_ == nullptr) {
    ASSIGN_OR_RETURN(operations_so_far_, device_->NewEvent());
    ASSIGN_OR_RETURN(beside_, device_->NewUrgentStream());
  }
  stream()->Record(operations_so_far_.get());
  beside_->WaitFor(operations_so_far_.get());
  RETURN_IF_ERROR(enqueue(beside_.get()));
  beside_->Record(EventOf(done));
  return absl::OkStatus();
}

}  // namespace satrap
