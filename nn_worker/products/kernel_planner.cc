#include "nn_worker/products/kernel_planner.h"

#include <utility>

#include "common/base/check.h"
#include "nn_worker/device/kernel.h"
#include "nn_worker/device/kernels/column_sum.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/matrix_product.h"
#include "nn_worker/device/kernels/value_access.h"

namespace satrap {
namespace {

constexpr int64_t kWorkspaceBytes = 1 << 18;
constexpr int64_t kThreads = 128;

// Bit c of a row of the mask says whether c[row, c] is positive.
SATRAP_KERNEL void WriteMaskKernel(ConstValues c, int64_t row_bytes, uint8_t* mask) {
  const int64_t bytes = (c.cols + 7) / 8;
  for (int64_t i = ThreadInGrid(); i < c.rows * bytes; i += ThreadsInGrid()) {
    const int64_t row = i / bytes, first = i % bytes * 8;
    unsigned bits = 0;
    for (int64_t col = first; col < first + 8 && col < c.cols; ++col) {
      if (LoadValue(c, row, col) > 0) bits |= 1u << (col - first);
    }
    mask[row * row_bytes + first / 8] = static_cast<uint8_t>(bits);
  }
}

SATRAP_KERNEL void ApplyMaskKernel(const uint8_t* mask, int64_t row_bytes, Values c) {
  for (int64_t i = ThreadInGrid(); i < c.rows * c.cols; i += ThreadsInGrid()) {
    const int64_t row = i / c.cols, col = i % c.cols;
    if ((mask[row * row_bytes + col / 8] >> (col % 8) & 1) == 0) StoreValue(c, row, col, 0);
  }
}

Dim3 Blocks(int64_t threads) {
  return {static_cast<uint32_t>((threads + kThreads - 1) / kThreads)};
}

ElementType FactorType(ProductPrecision precision) {
  if (precision == ProductPrecision::kBf16) return ElementType::kBF16;
  return precision == ProductPrecision::kF16 ? ElementType::kF16 : ElementType::kF32;
}

void CheckAligned(const void* address, int64_t alignment) {
  CHECK(address != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(alignment) == 0) << alignment;
}

class KernelPlan final : public ProductPlan {
 public:
  KernelPlan(const ProductSpec& spec, PlannerLog* log) : spec_(spec), log_(log) {}

  void Run(DeviceStream* stream, int64_t samples, const ProductBuffers& buffers,
           void* workspace) override {
    CHECK(samples >= 1 && samples <= spec_.samples()) << samples << " of " << spec_.samples();
    if (log_ != nullptr) log_->run.push_back(spec_);
    CheckAligned(buffers.a, spec_.a_alignment);
    CheckAligned(buffers.b, spec_.b_alignment);
    CheckAligned(buffers.c, spec_.c_alignment);
    CheckAligned(workspace, 256);
    Fill(stream, MatrixOf(static_cast<uint8_t*>(workspace), 1, kWorkspaceBytes), 255);
    const MatrixProduct product = ProductOf(samples, buffers);
    if (spec_.transpose_a) {
      // The sum is computed in pieces, as in our own weight gradients.
      CHECK(!buffers.add &&
            ProductPartials(product.c.rows, product.c.cols, product.k) * 4 <= kWorkspaceBytes);
      MultiplyInPieces(stream, product, static_cast<float*>(workspace));
    } else {
      Multiply(stream, product);
    }
    AfterProduct(stream, samples, product, buffers, static_cast<float*>(workspace));
  }

 private:
  MatrixProduct ProductOf(int64_t samples, const ProductBuffers& buffers) const {
    const ElementType type = FactorType(spec_.precision);
    const auto factor = [type](const void* data, int64_t stride, bool transposed) {
      return transposed ? Factor{data, type, 1, stride} : Factor{data, type, stride, 1};
    };
    const int64_t rows = spec_.transpose_a ? spec_.rows : samples;
    MatrixProduct product = {
        factor(buffers.a, spec_.a_stride, spec_.transpose_a),
        factor(buffers.b, spec_.b_stride, spec_.transpose_b),
        Values(buffers.c, rows, spec_.cols, spec_.c_stride,
               spec_.f32_output ? ElementType::kF32 : type),
        spec_.transpose_a ? samples : spec_.terms,
    };
    product.add = buffers.add;
    if (spec_.epilogue == ProductEpilogue::kBias || spec_.epilogue == ProductEpilogue::kBiasRelu ||
        spec_.epilogue == ProductEpilogue::kBiasReluMask) {
      CheckAligned(buffers.bias, 16);
      product.bias = buffers.bias;
      if (spec_.epilogue != ProductEpilogue::kBias) product.activation = Activation::kRelu;
    }
    return product;
  }

  void AfterProduct(DeviceStream* stream, int64_t samples, const MatrixProduct& product,
                    const ProductBuffers& buffers, float* workspace) const {
    const int64_t row_bytes = MaskStride(spec_.cols) / 8;
    if (spec_.epilogue == ProductEpilogue::kBiasReluMask) {
      CheckAligned(buffers.mask, 16);
      Launch<WriteMaskKernel>(stream, Blocks(samples * row_bytes), {kThreads}, 0, product.c,
                              row_bytes, static_cast<uint8_t*>(buffers.mask));
    }
    if (spec_.epilogue == ProductEpilogue::kReluGrad) {
      CheckAligned(buffers.mask, 16);
      Launch<ApplyMaskKernel>(stream, Blocks(samples * spec_.cols), {kThreads}, 0,
                              static_cast<const uint8_t*>(buffers.mask), row_bytes, product.c);
    }
    if (spec_.epilogue == ProductEpilogue::kColumnSums) {
      CheckAligned(buffers.sums, 16);
      CHECK(ColumnSumPartials(samples, spec_.cols) * 4 <= kWorkspaceBytes);
      const ConstValues b(buffers.b, samples, spec_.cols, spec_.b_stride,
                          FactorType(spec_.precision));
      ColumnSum(stream, b, workspace, buffers.sums);
    }
  }

  const ProductSpec spec_;
  PlannerLog* const log_;
};

class KernelPlanner final : public ProductPlanner {
 public:
  KernelPlanner(Refusal refusal, PlannerLog* log) : refusal_(std::move(refusal)), log_(log) {}

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& spec) override {
    CHECK(ForLibrary(spec)) << spec.rows << " x " << spec.cols << " of " << spec.terms << " terms";
    CHECK(spec.epilogue != ProductEpilogue::kColumnSums || (spec.f32_output && spec.transpose_a));
    if (refusal_ != nullptr) {
      absl::Status refused = refusal_(spec);
      if (!refused.ok()) return refused;
    }
    if (log_ != nullptr) log_->prepared.push_back(spec);
    return std::make_unique<KernelPlan>(spec, log_);
  }

 private:
  const Refusal refusal_;
  PlannerLog* const log_;
};

}  // namespace

std::unique_ptr<ProductPlanner> NewKernelPlanner(Refusal refusal, PlannerLog* log) {
  return std::make_unique<KernelPlanner>(std::move(refusal), log);
}

}  // namespace satrap
