#include "nn_worker/graph/step/gradient_sums.h"

#include <cstdint>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

// Ranks wait for one another without a limit; Abort of the collective ends a wait.
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

// Adds up in place, in memory that the host can access.
class SumsInPlace final : public GradientSums {
 public:
  SumsInPlace(DeviceMemory* memory, Collective* collective, const Tensor& gradients)
      : memory_(memory), collective_(collective), gradients_(gradients) {}

  absl::Status Start() override {
    memory_->Sync();
    auto* const values = static_cast<float*>(memory_->HostView(gradients_.data));
    sum_ = collective_->StartAllReduceSum(absl::MakeSpan(values, gradients_.cols));
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    RETURN_IF_ERROR(sum_->Wait(kForever));
    sum_.reset();
    return absl::OkStatus();
  }

 private:
  DeviceMemory* const memory_;
  Collective* const collective_;
  const Tensor gradients_;
  std::unique_ptr<PendingSum> sum_;
};

// Copies the gradients to pinned memory, sums them there, and copies the sums back.
class SumsThroughHost final : public GradientSums {
 public:
  SumsThroughHost(DeviceMemory* memory, Collective* collective, const Tensor& gradients,
                  absl::Span<float> pinned, std::unique_ptr<BackendEvent> copied_out)
      : memory_(memory),
        collective_(collective),
        gradients_(gradients),
        pinned_(pinned),
        copied_out_(std::move(copied_out)) {}

  absl::Status Start() override {
    memory_->CopyOut(gradients_, Bytes());
    memory_->Record(DeviceQueue::kOperations, copied_out_.get());
    RETURN_IF_ERROR(AwaitEvent(memory_, copied_out_.get(), kForever,
                               [&] { return !collective_->status().ok(); }));
    sum_ = collective_->StartAllReduceSum(pinned_);
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    RETURN_IF_ERROR(sum_->Wait(kForever));
    sum_.reset();
    memory_->CopyIn(Bytes(), gradients_);
    return absl::OkStatus();
  }
  absl::Span<const float> HostCopy() const override { return pinned_; }

 private:
  absl::Span<uint8_t> Bytes() const {
    return absl::MakeSpan(reinterpret_cast<uint8_t*>(pinned_.data()),
                          pinned_.size() * sizeof(float));
  }

  DeviceMemory* const memory_;
  Collective* const collective_;
  const Tensor gradients_;
  const absl::Span<float> pinned_;
  const std::unique_ptr<BackendEvent> copied_out_;
  std::unique_ptr<PendingSum> sum_;
};

// The sums of a single rank. As with all other sums, a dead collective is an error here, too.
class SumsOfOneRank final : public GradientSums {
 public:
  explicit SumsOfOneRank(Collective* collective) : collective_(collective) {}
  absl::Status Start() override { return collective_->status(); }
  absl::Status Finish() override { return collective_->status(); }

 private:
  Collective* const collective_;
};

// Adds up directly between devices, while operations may run.
class SumsOnDevice final : public GradientSums {
 public:
  SumsOnDevice(DeviceMemory* memory, Collective* collective, DeviceReduction* reduction,
               const Tensor& gradients, std::unique_ptr<BackendEvent> summed)
      : memory_(memory),
        collective_(collective),
        reduction_(reduction),
        gradients_(gradients),
        summed_(std::move(summed)) {}
  ~SumsOnDevice() override {
    // The memory of the gradients is about to be freed, but a sum that waits for other ranks may
    // never end by itself.
    if (pending_) reduction_->Abort(absl::CancelledError("the network was destroyed"));
  }

  absl::Status Start() override {
    pending_ = true;
    const auto add_up = [this](DeviceStream* stream) {
      return reduction_->AllReduceSum(stream, static_cast<float*>(gradients_.data),
                                      gradients_.cols);
    };
    return memory_->EnqueueBeside(add_up, summed_.get());
  }

  absl::Status Finish() override {
    absl::Status failure;
    const auto failed = [&] {
      failure = reduction_->Poll();
      // A sum whose peer is lost does not always fail by itself. The code that learns of the loss
      // may abort the collective; in a run, the rank's process is ended instead.
      if (failure.ok()) failure = collective_->status();
      return !failure.ok();
    };
    const absl::Status waited = AwaitEvent(memory_, summed_.get(), kForever, failed);
    // The sum may have ended because of an error, so poll once more.
    if (!failed()) {
      pending_ = !waited.ok();
      return waited;
    }
    reduction_->Abort(failure);
    return failure;
  }

 private:
  DeviceMemory* const memory_;
  Collective* const collective_;
  DeviceReduction* const reduction_;
  const Tensor gradients_;
  const std::unique_ptr<BackendEvent> summed_;
  bool pending_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GradientSums>> NewGradientSums(DeviceMemory* memory,
                                                              Collective* collective,
                                                              DeviceReduction* reduction,
                                                              const Tensor& gradients) {
  CHECK(gradients.rows == 1 && gradients.dtype == DType::kF32);
  std::unique_ptr<GradientSums> sums;
  memory->Sync();
  if (memory->HostView(gradients.data) != nullptr) {
    sums = std::make_unique<SumsInPlace>(memory, collective, gradients);
  } else if (collective->size() == 1) {
    sums = std::make_unique<SumsOfOneRank>(collective);
  } else {
    ASSIGN_OR_RETURN(std::unique_ptr<BackendEvent> event, memory->NewEvent());
    if (reduction != nullptr) {
      sums = std::make_unique<SumsOnDevice>(memory, collective, reduction, gradients,
                                            std::move(event));
    } else {
      ASSIGN_OR_RETURN(void* const pinned, memory->AllocatePinned(gradients.size_bytes()));
      sums = std::make_unique<SumsThroughHost>(
          memory, collective, gradients,
          absl::MakeSpan(static_cast<float*>(pinned), gradients.cols), std::move(event));
    }
  }
  return sums;
}

}  // namespace satrap
