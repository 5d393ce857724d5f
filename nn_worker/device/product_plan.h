// Products that a vendor's library computes. A product is planned once, with everything that does
// not change from step to step. The plan can then be run with any number of samples up to that of
// the spec.
//
// The same plan and arguments give the same bits, and equal specs give equal plans.
//
// Thread-compatible: a plan runs once at a time, and a planner prepares one plan at a time. A
// planner must outlive its plans.

#ifndef SATRAP_NN_WORKER_DEVICE_PRODUCT_PLAN_H_
#define SATRAP_NN_WORKER_DEVICE_PRODUCT_PLAN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "nn_worker/device/device_stream.h"
#include "nn_worker/device/product_spec.h"

namespace satrap {

// The most device memory that a planner's plans may need as workspace. The vendor's documentation
// advises this much for the cards that we build for (cuBLAS, cublasSetWorkspace: 32 MiB on compute
// capability 9.0).
inline constexpr int64_t kMostPlanWorkspaceBytes = int64_t{32} << 20;

// Addresses in device memory. Matrices are aligned as the spec says, and the bias to 16 bytes.
// Factors, c and the bias have the spec's types.
struct ProductBuffers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  bool add = false;            // the product is added to c, before the epilogue
  const void* bias = nullptr;  // [cols], for the epilogues with a bias
};

class ProductPlan {
 public:
  virtual ~ProductPlan() = default;
  // Enqueues the product of the first `samples` samples or, if the spec has pieces, the product of
  // each of their pieces.
  //   workspace: workspace_bytes() of device memory, aligned to 256, used only by this stream
  //   REQUIRES: 1 <= samples <= the spec's samples()
  virtual void Run(DeviceStream* stream, int64_t samples, const ProductBuffers& buffers,
                   void* workspace) = 0;
};

class ProductPlanner {
 public:
  virtual ~ProductPlanner() = default;
  virtual int64_t workspace_bytes() const = 0;  // at most kMostPlanWorkspaceBytes
  // NOT_FOUND if the library has no algorithm for the spec. If the spec has an epilogue, the caller
  // then tries the product without it and uses our own kernels for the epilogue. If the spec has
  // none, our own kernel also computes the product. INTERNAL if the library fails. REQUIRES:
  // ForLibrary(spec); a product in pieces has transpose_a, an f32 output and no epilogue
  virtual absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& spec) = 0;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_PRODUCT_PLAN_H_
