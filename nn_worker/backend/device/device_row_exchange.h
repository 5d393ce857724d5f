// GatherRows and ScatterGradients of DeviceBackend. They make lists of tensors for the kernels
// (nn_worker/device/kernels/gather_pool.h, scatter_rows.h).
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROW_EXCHANGE_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROW_EXCHANGE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "nn_worker/backend/device/device_transfers.h"
#include "nn_worker/backend/row_exchange_args.h"

namespace satrap {

// Implements Backend::ReserveScatter.
absl::Status ReserveScatterOnDevice(DeviceTransfers* transfers, int64_t num_ids,
                                    int64_t row_values);
void GatherRowsOnDevice(DeviceTransfers* transfers, absl::Span<const FeatureExchange> features);
// REQUIRES: no feature has one_row_a_sample (for such a feature a plain copy is enough)
void ScatterGradientsOnDevice(DeviceTransfers* transfers,
                              absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                              const Tensor& gradients);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_ROW_EXCHANGE_H_
