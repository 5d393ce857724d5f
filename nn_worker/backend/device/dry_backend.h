// A device's backend without a device (nn_worker/device/dry_device.h). Operations and copies do
// nothing, and allocated memory is counted. A backend for a card also counts the memory that a
// vendor's library needs for its products (nn_worker/device/dry_planner.h).
//
// This library links no kernels. A program links the kernels of its device.
//
// Thread-compatible, as every Backend.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DRY_BACKEND_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DRY_BACKEND_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/backend/backend.h"
#include "proto/job.pb.h"

namespace satrap {

class DeviceMeter;

// Memory used on a device, in bytes.
struct DeviceUse {
  int64_t allocated = 0;   // by callers of the backend
  int64_t scratch = 0;     // the most that an operation asked for
  int64_t lists = 0;       // the most that the network's operations read
  int64_t part_lists = 0;  // the most that the exchange with embedding rows reads
};

class DryBackend {
 public:
  // `device`: HOST or CUDA
  static absl::StatusOr<DryBackend> Create(NnWorkerConfig::Device device);

  Backend* get() const { return backend_.get(); }
  // The memory used so far.
  DeviceUse use() const;

 private:
  DryBackend(std::shared_ptr<const DeviceMeter> meter, std::unique_ptr<Backend> backend);

  std::shared_ptr<const DeviceMeter> meter_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DRY_BACKEND_H_
