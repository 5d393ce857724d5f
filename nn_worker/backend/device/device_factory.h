// Makes the device on which a program's kernels run, and the object that sums over the devices of
// all ranks. A program links one of two sources: host_device_factory.cc with kernels from the
// host's compiler, or cuda_device_factory.cc with kernels from nvcc. Both kinds of kernels define
// the same functions.
//
// Thread-safe: the functions depend only on their arguments and on the machine.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_FACTORY_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_FACTORY_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/role/rendezvous_store.h"
#include "nn_worker/collective/nccl_collective.h"
#include "nn_worker/device/device.h"
#include "nn_worker/products/products.h"
#include "proto/job.pb.h"

namespace satrap {

struct JobDevice {
  std::unique_ptr<Device> device;
  std::unique_ptr<Products> products;
};

// Whether NewJobDevice makes cards; otherwise it makes the host's device.
bool ProgramHasCards();

// `card` is the number of a card of this machine, from 0; HOST ignores it. Errors of CUDA are those
// of NewCudaDevice (nn_worker/device/cuda/cuda_device.h) and of NewCublasLtPlanner
// (cublaslt_plan.h). FAILED_PRECONDITION if this program has the other kind of kernels. REQUIRES:
// config.device is HOST or CUDA
absl::StatusOr<JobDevice> NewJobDevice(const NnWorkerConfig& config, int card);

// Checks that the library that NewDeviceReduction needs is there, before the ranks wait for one
// another. Errors are those of CheckNccl (nccl_collective.h); UNIMPLEMENTED if this program's
// kernels were compiled by the host's compiler.
absl::Status CheckDeviceReduction();

// Connects this rank's device with those of the other ranks. Errors are those of NewNcclReduction
// (nccl_collective.h); UNIMPLEMENTED if this program's kernels were compiled by the host's
// compiler.
absl::StatusOr<std::unique_ptr<DeviceReduction>> NewDeviceReduction(
    const NcclOptions& options, RendezvousStore* store, absl::FunctionRef<bool()> aborted);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_FACTORY_H_
