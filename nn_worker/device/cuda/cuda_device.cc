#include "nn_worker/device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/cuda/card_check.h"

namespace satrap {
namespace {

std::string ErrorText(cudaError_t error) {
  return absl::StrCat(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

// Whether the error shows that the call itself was wrong, whatever the state of the card.
bool BreaksContract(cudaError_t error) {
  return error == cudaErrorInvalidValue || error == cudaErrorInvalidConfiguration ||
         error == cudaErrorInvalidResourceHandle || error == cudaErrorInvalidMemcpyDirection;
}

// Measures the times of operations by events between them (Device::BeginTrace). The calls apply to
// the card that the calling thread chose last, and return CUDA's first error.
class OperationTrace {
 public:
  OperationTrace() = default;
  OperationTrace(const OperationTrace&) = delete;
  OperationTrace& operator=(const OperationTrace&) = delete;
  ~OperationTrace() {
    for (const Begin& begin : begins_) cudaEventDestroy(begin.event);
  }

  // Call before an operation is enqueued.
  cudaError_t Mark(const char* name, cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    const cudaError_t error = cudaEventCreate(&event);
    if (error != cudaSuccess) return error;
    begins_.push_back({name, stream, event});
    return cudaEventRecord(event, stream);
  }

  // Waits for all operations that were marked.
  cudaError_t End(std::vector<TracedOperation>* operations) {
    operations->resize(begins_.size());
    std::map<cudaStream_t, cudaEvent_t> ends;  // of the operation that was visited last
    for (const Begin& begin : begins_) ends[begin.stream] = nullptr;
    for (auto& [stream, end] : ends) {
      cudaError_t error = Mark("", stream);
      end = begins_.back().event;
      if (error == cudaSuccess) error = cudaEventSynchronize(end);
      if (error != cudaSuccess) return error;
    }
    for (size_t i = operations->size(); i-- > 0;) {
      float milliseconds = 0;
      cudaEvent_t& end = ends[begins_[i].stream];
      const cudaError_t error = cudaEventElapsedTime(&milliseconds, begins_[i].event, end);
      if (error != cudaSuccess) return error;
      (*operations)[i] = {begins_[i].name, 1e3 * static_cast<double>(milliseconds)};
      end = begins_[i].event;
    }
    return cudaSuccess;
  }

 private:
  struct Begin {
    const char* name;
    cudaStream_t stream;
    cudaEvent_t event;
  };

  std::vector<Begin> begins_;
};

// A card and its first error. Outlives the device's streams, events and memory.
class Card {
 public:
  Card(int number, std::string name) : number_(number), name_(std::move(name)) {}

  // CUDA's calls apply to the card that the calling thread chose last.
  void Choose() { Keep(cudaSetDevice(number_), "choosing the card"); }

  // Keeps the first error. An error that shows a broken contract fails a CHECK, unless the card has
  // failed before: after a failure even correct calls return such errors.
  void Keep(cudaError_t error, absl::string_view operation) {
    if (error == cudaSuccess) return;
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    CHECK(!BreaksContract(error)) << operation << ": " << ErrorText(error);
    failure_ =
        absl::InternalError(absl::StrCat(ToString(), ", ", operation, ": ", ErrorText(error)));
  }

  // Like the function above, for the error of a library.
  void Keep(const absl::Status& error) {
    MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    failure_ = absl::InternalError(absl::StrCat(ToString(), ", ", error.message()));
  }

  absl::Status failure() {
    MutexLock lock(&mutex_);
    return failure_;
  }

  std::string ToString() const { return absl::StrCat("card ", number_, " (", name_, ")"); }

  // Null unless operations are traced.
  std::unique_ptr<OperationTrace>& trace() { return trace_; }

 private:
  const int number_;
  const std::string name_;
  Mutex mutex_;
  absl::Status failure_ GUARDED_BY(mutex_);
  std::unique_ptr<OperationTrace> trace_;
};

class CudaMemory final : public Memory {
 public:
  CudaMemory(Card* card, void* data, int64_t bytes, bool pinned)
      : card_(card), data_(data), bytes_(bytes), pinned_(pinned) {}
  ~CudaMemory() override {
    card_->Choose();
    card_->Keep(pinned_ ? cudaFreeHost(data_) : cudaFree(data_), "freeing memory");
  }
  void* data() const override { return data_; }
  int64_t bytes() const override { return bytes_; }

 private:
  Card* const card_;
  void* const data_;
  const int64_t bytes_;
  const bool pinned_;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(Card* card, cudaEvent_t event) : card_(card), event_(event) {}
  ~CudaEvent() override {
    card_->Choose();
    card_->Keep(cudaEventDestroy(event_), "destroying an event");
  }
  absl::StatusOr<bool> Poll() override {
    RETURN_IF_ERROR(card_->failure());
    const cudaError_t error = cudaEventQuery(event_);
    if (error == cudaSuccess) return true;
    if (error == cudaErrorNotReady) return false;
    card_->Keep(error, "waiting for an event");
    return card_->failure();
  }
  cudaEvent_t event() const { return event_; }

 private:
  Card* const card_;
  const cudaEvent_t event_;
};

class CudaStream final : public DeviceStream {
 public:
  CudaStream(Card* card, cudaStream_t stream) : card_(card), stream_(stream) {}
  ~CudaStream() override {
    card_->Choose();
    // Without this wait, operations of the stream could still run while their memory is freed.
    card_->Keep(cudaStreamSynchronize(stream_), "ending a stream");
    card_->Keep(cudaStreamDestroy(stream_), "destroying a stream");
  }

  void CopyIn(const void* pinned, void* device, int64_t bytes) override {
    CheckNotCaptured("a copy to the card");
    Copy(pinned, device, bytes, cudaMemcpyHostToDevice, "a copy to the card");
  }
  void CopyOut(const void* device, void* pinned, int64_t bytes) override {
    CheckNotCaptured("a copy from the card");
    Copy(device, pinned, bytes, cudaMemcpyDeviceToHost, "a copy from the card");
  }
  void CopyWithin(const void* from, void* to, int64_t bytes) override {
    Copy(from, to, bytes, cudaMemcpyDeviceToDevice, "a copy within the card");
  }

  void Launch(const KernelLaunch& launch) override {
    card_->Choose();
    Mark(launch.signature);
    const cudaError_t error = cudaLaunchKernel(
        reinterpret_cast<const void*>(launch.entry),
        dim3(launch.grid.x, launch.grid.y, launch.grid.z),
        dim3(launch.block.x, launch.block.y, launch.block.z),
        // CUDA copies the arguments and writes to none of them.
        const_cast<void**>(launch.args), static_cast<size_t>(launch.shared_bytes), stream_);
    Keep(error, launch.signature);
  }

  void Record(Event* event) override {
    CheckNotCaptured("an event");
    card_->Choose();
    card_->Keep(cudaEventRecord(static_cast<CudaEvent*>(event)->event(), stream_),
                "recording an event");
  }
  void WaitFor(Event* event) override {
    CheckNotCaptured("a wait for an event");
    card_->Choose();
    card_->Keep(cudaStreamWaitEvent(stream_, static_cast<CudaEvent*>(event)->event(), 0),
                "making a stream wait");
  }

  // From now on errors of enqueued operations belong to the capture and do not mark the card as
  // failed.
  void BeginCapture() { captured_ = true; }
  // Ends the capture. Returns its first error.
  absl::Status EndCapture() {
    captured_ = false;
    return std::exchange(capture_failure_, absl::OkStatus());
  }
  // Keeps the error of a library's operation.
  void Keep(const absl::Status& error) {
    if (!captured_) return card_->Keep(error);
    cudaGetLastError();
    if (capture_failure_.ok()) capture_failure_ = error;
  }
  cudaStream_t stream() const { return stream_; }
  // Begins an operation of the trace, if there is one.
  void Mark(const char* name) {
    if (card_->trace() == nullptr || captured_) return;
    card_->Keep(card_->trace()->Mark(name, stream_), "tracing an operation");
  }

 private:
  // CUDA would also capture a copy from the host. Each launch would then copy the values that the
  // host's memory holds at that time.
  void CheckNotCaptured(absl::string_view operation) const {
    CHECK(!captured_) << operation << " cannot be captured";
  }
  void Keep(cudaError_t error, absl::string_view operation) {
    if (error == cudaSuccess) return;
    if (!captured_) return card_->Keep(error, operation);
    Keep(absl::InternalError(absl::StrCat(operation, ": ", ErrorText(error))));
  }
  void Copy(const void* from, void* to, int64_t bytes, cudaMemcpyKind kind,
            absl::string_view operation) {
    if (bytes == 0) return;
    card_->Choose();
    Mark("copy");
    Keep(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), kind, stream_), operation);
  }

  Card* const card_;
  const cudaStream_t stream_;
  bool captured_ = false;
  absl::Status capture_failure_;
};

class CudaGraph final : public StreamGraph {
 public:
  CudaGraph(Card* card, cudaGraphExec_t graph) : card_(card), graph_(graph) {}
  // A running launch is not disturbed: CUDA frees its resources when it has ended.
  ~CudaGraph() override {
    card_->Choose();
    card_->Keep(cudaGraphExecDestroy(graph_), "destroying a graph");
  }
  void Launch(DeviceStream* stream) override {
    auto* const on = static_cast<CudaStream*>(stream);
    card_->Choose();
    on->Mark("graph");
    card_->Keep(cudaGraphLaunch(graph_, on->stream()), "launching a graph");
  }

 private:
  Card* const card_;
  const cudaGraphExec_t graph_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int number, const std::string& name) : card_(number, name) {}

  absl::StatusOr<DeviceRoom> Room() override {
    card_.Choose();
    size_t free_bytes = 0, total_bytes = 0;
    RETURN_IF_ERROR(AsStatus(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory"));
    return DeviceRoom{card_.ToString(), static_cast<int64_t>(total_bytes),
                      static_cast<int64_t>(free_bytes)};
  }

  absl::StatusOr<std::unique_ptr<Memory>> Allocate(int64_t bytes) override {
    card_.Choose();
    void* data = nullptr;
    // For 0 bytes CUDA returns no address.
    const cudaError_t error = cudaMalloc(&data, std::max<size_t>(bytes, 1));
    if (error == cudaErrorMemoryAllocation) return OutOfMemory(bytes);
    RETURN_IF_ERROR(AsStatus(error, "allocating memory"));
    return std::make_unique<CudaMemory>(&card_, data, bytes, /*pinned=*/false);
  }

  absl::StatusOr<std::unique_ptr<Memory>> AllocatePinned(int64_t bytes) override {
    card_.Choose();
    void* data = nullptr;
    const cudaError_t error =
        cudaHostAlloc(&data, std::max<size_t>(bytes, 1), cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return absl::ResourceExhaustedError(absl::StrCat(
          "the host has no room for ", bytes, " bytes of pinned memory (", ErrorText(error), ")"));
    }
    RETURN_IF_ERROR(AsStatus(error, "allocating pinned memory"));
    return std::make_unique<CudaMemory>(&card_, data, bytes, /*pinned=*/true);
  }

  absl::StatusOr<std::unique_ptr<DeviceStream>> NewStream() override { return MakeStream(0); }

  absl::StatusOr<std::unique_ptr<DeviceStream>> NewUrgentStream() override {
    card_.Choose();
    int least = 0, greatest = 0;
    RETURN_IF_ERROR(AsStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest),
                             "reading the range of stream priorities"));
    return MakeStream(greatest);
  }

  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override {
    card_.Choose();
    cudaEvent_t event = nullptr;
    RETURN_IF_ERROR(
        AsStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
    return std::make_unique<CudaEvent>(&card_, event);
  }

  absl::StatusOr<std::unique_ptr<StreamGraph>> Capture(DeviceStream* stream,
                                                       absl::FunctionRef<void()> enqueue) override {
    card_.Choose();
    RETURN_IF_ERROR(card_.failure());
    auto* const captured = static_cast<CudaStream*>(stream);
    // Other threads may continue to allocate and to copy on their own streams.
    RETURN_IF_ERROR(
        Refusal(cudaStreamBeginCapture(captured->stream(), cudaStreamCaptureModeThreadLocal),
                "beginning a capture"));
    captured->BeginCapture();
    enqueue();
    const absl::Status enqueued = captured->EndCapture();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(captured->stream(), &graph);
    const auto no_more_graph = absl::MakeCleanup([&graph] {
      if (graph != nullptr) cudaGraphDestroy(graph);
    });
    if (!enqueued.ok()) {
      // After a refused operation, all later ones and the end of the capture are refused, too.
      cudaGetLastError();
      return absl::InternalError(absl::StrCat(card_.ToString(), ", ", enqueued.message()));
    }
    RETURN_IF_ERROR(Refusal(ended, "ending a capture"));
    cudaGraphExec_t made = nullptr;
    RETURN_IF_ERROR(Refusal(cudaGraphInstantiate(&made, graph, 0), "making a graph"));
    auto result = std::make_unique<CudaGraph>(&card_, made);
    // Allocates the memory of the graph now instead of in its first launch.
    RETURN_IF_ERROR(Refusal(cudaGraphUpload(made, captured->stream()), "loading a graph"));
    return result;
  }

  absl::Status BeginTrace() override {
    card_.trace() = std::make_unique<OperationTrace>();
    return card_.failure();
  }
  absl::StatusOr<std::vector<TracedOperation>> EndTrace() override {
    card_.Choose();
    const std::unique_ptr<OperationTrace> trace = std::move(card_.trace());
    std::vector<TracedOperation> operations;
    RETURN_IF_ERROR(AsStatus(trace->End(&operations), "tracing operations"));
    return operations;
  }

  // Without a profiler each of these calls only tests a pointer.
  void BeginRange(const char* name) override { nvtxRangePushA(name); }
  void EndRange() override { nvtxRangePop(); }

 private:
  absl::StatusOr<std::unique_ptr<DeviceStream>> MakeStream(int priority) {
    card_.Choose();
    cudaStream_t stream = nullptr;
    // The streams must not wait for the default stream, which nothing uses.
    RETURN_IF_ERROR(AsStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
                             "making a stream"));
    return std::make_unique<CudaStream>(&card_, stream);
  }

  absl::Status AsStatus(cudaError_t error, absl::string_view operation) {
    card_.Keep(error, operation);
    return card_.failure();
  }

  // Returns the error with which CUDA refused a step of a capture; OK if there is none. A refusal
  // does not mean that the card has failed, so CUDA's record of the error is cleared.
  absl::Status Refusal(cudaError_t error, absl::string_view operation) {
    if (error == cudaSuccess) return absl::OkStatus();
    cudaGetLastError();
    return absl::InternalError(
        absl::StrCat(card_.ToString(), ", ", operation, ": ", ErrorText(error)));
  }

  absl::Status OutOfMemory(int64_t bytes) {
    // This error does not harm the card, so it must not be reported again by a later call.
    cudaGetLastError();
    ASSIGN_OR_RETURN(const DeviceRoom room, Room());
    return absl::ResourceExhaustedError(
        absl::StrCat(room.device, " has no room for ", bytes, " bytes: ", room.free_bytes,
                     " of its ", room.total_bytes,
                     " bytes are free; use smaller batches or a smaller model, or end other "
                     "programs on it"));
  }

  Card card_;
};

CardAnswers Ask(int card) {
  CardAnswers answers;
  answers.card = card;
  cudaRuntimeGetVersion(&answers.program_version);
  cudaDriverGetVersion(&answers.driver_version);
  const cudaError_t error = cudaGetDeviceCount(&answers.num_cards);
  // If there are no cards, the message of CheckCard is better than CUDA's.
  if (error == cudaErrorNoDevice) answers.num_cards = 0;
  if (error != cudaSuccess && error != cudaErrorNoDevice) answers.error = ErrorText(error);
  if (error != cudaSuccess || card < 0 || card >= answers.num_cards) return answers;
  cudaDeviceProp properties;
  const cudaError_t asked = cudaGetDeviceProperties(&properties, card);
  if (asked != cudaSuccess) {
    answers.error = ErrorText(asked);
    return answers;
  }
  answers.name = properties.name;
  answers.major = properties.major;
  answers.minor = properties.minor;
  return answers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(int card) {
  const CardAnswers answers = Ask(card);
  RETURN_IF_ERROR(CheckCard(answers));
  // Initialises CUDA's state for the card now, which takes a good part of a second. This also shows
  // whether another program uses the card exclusively.
  cudaError_t error = cudaSetDevice(card);
  if (error == cudaSuccess) error = cudaFree(nullptr);
  if (error != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot train on card ", card, " (", answers.name, "): ", ErrorText(error)));
  }
  return std::make_unique<CudaDevice>(card, answers.name);
}

void* CudaStreamOf(DeviceStream* stream) {
  auto* const made = static_cast<CudaStream*>(stream);
  made->Mark("library");
  return made->stream();
}

void KeepErrorOfCard(DeviceStream* stream, const absl::Status& error) {
  CHECK(!error.ok());
  static_cast<CudaStream*>(stream)->Keep(error);
}

}  // namespace satrap
