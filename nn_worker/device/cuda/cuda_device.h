// The Device of an NVIDIA card, by CUDA's runtime. Every program may link it: without a driver the
// program starts, and NewCudaDevice says what is missing. A build without a toolkit has
// no_cuda_device.cc instead.
//
// The first error of a card is kept: from then on every wait returns it, with the name of the
// operation that reported it. That may be a later operation than the one that failed. The device is
// then unusable, and the process has to end. An error during a capture is not kept: the capture
// returns it, and the card remains usable.
//
// Thread-safe, as device.h says. Any thread of the process may use any card.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CUDA_DEVICE_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CUDA_DEVICE_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/device/device.h"

namespace satrap {

// `card`: the card's number, from 0. UNIMPLEMENTED in a build without CUDA; FAILED_PRECONDITION,
// with one message that says what is missing, if the card cannot be used (card_check.h).
absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(int card);

// The cudaStream_t of a stream that a CudaDevice made, for CUDA's libraries. A trace
// (Device::BeginTrace) counts each call as the beginning of an operation.
void* CudaStreamOf(DeviceStream* stream);

// Keeps the error of a library's call on `stream`, unless an earlier error was kept. During a
// capture it becomes the error of the capture; otherwise it becomes the card's error.
// REQUIRES: !error.ok()
void KeepErrorOfCard(DeviceStream* stream, const absl::Status& error);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CUDA_DEVICE_H_
