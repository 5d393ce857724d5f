#include "nn_worker/products/testing/kernel_planner.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "nn_worker/device/kernels/fill.h"
#include "nn_worker/device/kernels/matrix_product.h"

namespace satrap {
namespace {

constexpr int64_t kWorkspaceBytes = 1 << 18;

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
    if (spec_.piece > 0) return RunPieces(stream, samples, buffers);
    const MatrixProduct product = ProductOf(samples, buffers);
    if (spec_.transpose_a) {
      // The sum is computed in pieces, as in our own weight gradients.
      CHECK(!buffers.add &&
            ProductPartials(product.c.rows, product.c.cols, product.k) * 4 <= kWorkspaceBytes);
      MultiplyInPieces(stream, product, static_cast<float*>(workspace));
    } else {
      Multiply(stream, product);
    }
  }

 private:
  // The product of each piece, whose terms are added in order.
  void RunPieces(DeviceStream* stream, int64_t samples, ProductBuffers buffers) const {
    CHECK(!buffers.add);
    const int64_t value_bytes = ElementBytes(FactorType(spec_.precision));
    const auto* a = static_cast<const char*>(buffers.a);
    const auto* b = static_cast<const char*>(buffers.b);
    auto* c = static_cast<float*>(buffers.c);
    for (int64_t begin = 0; begin < samples; begin += spec_.piece) {
      buffers.a = a;
      buffers.b = b;
      buffers.c = c;
      Multiply(stream, ProductOf(std::min(spec_.piece, samples - begin), buffers));
      a += spec_.piece * spec_.a_stride * value_bytes;
      b += spec_.piece * spec_.b_stride * value_bytes;
      c += spec_.rows * spec_.c_stride;
    }
  }

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
    if (spec_.epilogue != ProductEpilogue::kNone) {
      CheckAligned(buffers.bias, 16);
      product.bias = ConstValues(buffers.bias, 1, spec_.cols, spec_.cols, product.c.type);
      if (spec_.epilogue == ProductEpilogue::kBiasRelu) product.activation = Activation::kRelu;
    }
    return product;
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
    CHECK(spec.piece == 0 ||
          (spec.transpose_a && spec.f32_output && spec.epilogue == ProductEpilogue::kNone));
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
