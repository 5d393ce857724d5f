#include "nn_worker/collective/nccl_collective.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/thread/clock.h"
#include "common/thread/mutex.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/device/cuda/dynamic_library.h"

namespace satrap {
namespace {

// The length of one wait for the store. After each wait, `aborted` is called again.
constexpr int64_t kStoreWaitMs = 200;

// The functions of the library that this file calls, with the types of the library's header.
struct Nccl {
  decltype(ncclGetUniqueId)* NewId;
  decltype(ncclCommInitRankConfig)* Connect;
  decltype(ncclCommGetAsyncError)* AsyncError;
  decltype(ncclCommAbort)* Abort;
  decltype(ncclAllReduce)* AllReduce;
  decltype(ncclGetErrorString)* ErrorString;
  decltype(ncclGetLastError)* LastError;

  // `comm` may be null.
  std::string Text(ncclResult_t result, ncclComm_t comm) const {
    const char* const last = LastError(comm);
    const bool has_more = last != nullptr && *last != '\0';
    return absl::StrCat(ErrorString(result), has_more ? ": " : "", has_more ? last : "");
  }
};

absl::StatusOr<Nccl> Load(const std::string& name) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open(name));
  Nccl nccl;
  RETURN_IF_ERROR(library.Find("ncclGetUniqueId", &nccl.NewId));
  RETURN_IF_ERROR(library.Find("ncclCommInitRankConfig", &nccl.Connect));
  RETURN_IF_ERROR(library.Find("ncclCommGetAsyncError", &nccl.AsyncError));
  RETURN_IF_ERROR(library.Find("ncclCommAbort", &nccl.Abort));
  RETURN_IF_ERROR(library.Find("ncclAllReduce", &nccl.AllReduce));
  RETURN_IF_ERROR(library.Find("ncclGetErrorString", &nccl.ErrorString));
  RETURN_IF_ERROR(library.Find("ncclGetLastError", &nccl.LastError));
  return nccl;
}

// The pauses of a polling loop. Most waits are short, so the loop begins by yielding. Later it
// sleeps, because a thread that keeps yielding would take a core from threads that compute.
class Pauses {
 public:
  void Pause() {
    if (++pauses_ <= kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }

 private:
  static constexpr int64_t kYields = 64;
  static constexpr std::chrono::microseconds kPause{20};
  int64_t pauses_ = 0;
};

class NcclReduction final : public DeviceReduction {
 public:
  NcclReduction(const Nccl& nccl, int card) : nccl_(nccl), card_(card) {}
  // Aborts, because NCCL's orderly shutdown waits for the other ranks, which may be gone.
  ~NcclReduction() override { Abort(absl::CancelledError("the reduction was destroyed")); }

  absl::Status Connect(const NcclOptions& options, const ncclUniqueId& id, int64_t deadline_ms,
                       absl::FunctionRef<bool()> aborted);

  absl::Status AllReduceSum(DeviceStream* stream, float* values, int64_t count) override {
    RETURN_IF_ERROR(Enqueue(stream, values, count));
    // After the call for the first sum has returned, NCCL may still be setting up connections, and
    // until these are ready it takes no other call. The lock is released between the checks, so
    // that Abort can end the sum.
    for (Pauses pauses;; pauses.Pause()) {
      MutexLock lock(&mutex_);
      RETURN_IF_ERROR(failure_);
      ncclResult_t state = ncclInProgress;
      RETURN_IF_ERROR(Keep(nccl_.AsyncError(comm_, &state), "asking for errors"));
      if (state != ncclInProgress) return Keep(state, "a sum");
    }
  }

  absl::Status Poll() override {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(failure_);
    ncclResult_t state = ncclSuccess;
    RETURN_IF_ERROR(Keep(nccl_.AsyncError(comm_, &state), "asking for errors"));
    return Keep(state, "a sum");
  }

  void Abort(absl::Status status) override {
    CHECK(!status.ok());
    MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    EndCommunicator();
  }

 private:
  absl::Status Enqueue(DeviceStream* stream, float* values, int64_t count) {
    MutexLock lock(&mutex_);
    RETURN_IF_ERROR(failure_);
    cudaSetDevice(card_);
    return Keep(nccl_.AllReduce(values, values, static_cast<size_t>(count), ncclFloat, ncclSum,
                                comm_, static_cast<cudaStream_t>(CudaStreamOf(stream))),
                "a sum");
  }
  // Returns OK if the operation has succeeded or is still in progress. An error ends the object.
  absl::Status Keep(ncclResult_t result, const char* what) REQUIRES(mutex_) {
    if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
    failure_ = absl::UnavailableError(
        absl::StrCat("NCCL, card ", card_, ": ", what, ": ", nccl_.Text(result, comm_)));
    EndCommunicator();
    return failure_;
  }
  void EndCommunicator() REQUIRES(mutex_) {
    if (comm_ != nullptr) nccl_.Abort(comm_);
    comm_ = nullptr;
  }

  const Nccl nccl_;
  const int card_;
  Mutex mutex_;
  absl::Status failure_ GUARDED_BY(mutex_);
  ncclComm_t comm_ GUARDED_BY(mutex_) = nullptr;
};

absl::Status NcclReduction::Connect(const NcclOptions& options, const ncclUniqueId& id,
                                    int64_t deadline_ms, absl::FunctionRef<bool()> aborted) {
  MutexLock lock(&mutex_);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  // Calls must return at once, so that nothing blocks when a rank is lost.
  config.blocking = 0;
  RETURN_IF_ERROR(
      Keep(nccl_.Connect(&comm_, options.size, id, options.rank, &config), "connecting"));
  for (Pauses pauses;; pauses.Pause()) {
    ncclResult_t state = ncclInProgress;
    RETURN_IF_ERROR(Keep(nccl_.AsyncError(comm_, &state), "connecting"));
    if (state != ncclInProgress) return Keep(state, "connecting");
    if (aborted()) {
      failure_ = absl::CancelledError("connecting the ranks' cards was aborted");
    } else if (MonotonicMs() >= deadline_ms) {
      failure_ = absl::DeadlineExceededError(
          absl::StrCat("NCCL, card ", card_, ": the ", options.size,
                       " ranks have not connected within ", options.connect_timeout_ms, " ms"));
    }
    if (!failure_.ok()) {
      EndCommunicator();
      return failure_;
    }
  }
}

// Returns the id with which all ranks connect. Rank 0 makes the id and the others read it.
absl::StatusOr<ncclUniqueId> ExchangeId(const Nccl& nccl, const NcclOptions& options,
                                        int64_t deadline_ms, RendezvousStore* store,
                                        absl::FunctionRef<bool()> aborted) {
  const std::string key = absl::StrCat(options.prefix, "/nccl");
  ncclUniqueId id;
  if (options.rank == 0) {
    const ncclResult_t made = nccl.NewId(&id);
    if (made != ncclSuccess) {
      return absl::UnavailableError(
          absl::StrCat("NCCL: making an id: ", nccl.Text(made, /*comm=*/nullptr)));
    }
    RETURN_IF_ERROR(store->Set(key, std::string(id.internal, sizeof(id.internal))));
    return id;
  }
  for (;;) {
    const absl::StatusOr<std::string> bytes = store->Get(key, kStoreWaitMs);
    if (bytes.ok() && bytes->size() == sizeof(id.internal)) {
      std::memcpy(id.internal, bytes->data(), bytes->size());
      return id;
    }
    if (bytes.ok()) return absl::UnavailableError("NCCL: rank 0 runs another version");
    if (!absl::IsDeadlineExceeded(bytes.status())) return bytes.status();
    if (aborted()) return absl::CancelledError("connecting the ranks' cards was aborted");
    if (MonotonicMs() >= deadline_ms) {
      return absl::DeadlineExceededError(absl::StrCat(
          "NCCL, rank ", options.rank, ": rank 0 has not published the id for connecting within ",
          options.connect_timeout_ms, " ms; its log says what it is waiting for"));
    }
  }
}

}  // namespace

absl::Status CheckNccl(const std::string& library) { return Load(library).status(); }

absl::StatusOr<std::unique_ptr<DeviceReduction>> NewNcclReduction(
    const NcclOptions& options, RendezvousStore* store, absl::FunctionRef<bool()> aborted) {
  const int64_t deadline_ms = MonotonicMs() + options.connect_timeout_ms;
  ASSIGN_OR_RETURN(const Nccl nccl, Load(options.library));
  const cudaError_t chosen = cudaSetDevice(options.card);
  if (chosen != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("NCCL: card ", options.card, ": ", cudaGetErrorString(chosen)));
  }
  ASSIGN_OR_RETURN(const ncclUniqueId id, ExchangeId(nccl, options, deadline_ms, store, aborted));
  auto reduction = std::make_unique<NcclReduction>(nccl, options.card);
  RETURN_IF_ERROR(reduction->Connect(options, id, deadline_ms, aborted));
  return reduction;
}

}  // namespace satrap
