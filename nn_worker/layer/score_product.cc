#include "nn_worker/layer/score_product.h"

#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor_copy.h"

namespace satrap {

absl::Status ScoreProduct::Bind(Backend* backend, int64_t most_items, int64_t dim) {
  backend_ = backend;
  dim_ = dim;
  for (Tensor* scratch : {&packed_, &transposed_, &dtransposed_}) {
    ASSIGN_OR_RETURN(*scratch, AllocateTensor(backend, DType::kF32, 1, most_items * dim));
  }
  for (Tensor* scratch : {&bias_, &dbias_}) {
    ASSIGN_OR_RETURN(*scratch, AllocateTensor(backend, DType::kF32, 1, most_items));
  }
  return absl::OkStatus();
}

// The second factor of a product must have no gaps, and must be stored like the weights of a linear
// layer, as (dim, items).
void ScoreProduct::Forward(Tensor x, Tensor items, Tensor bias, Tensor y) {
  const int64_t m = items.rows;
  const Tensor packed = Row(packed_, m);
  backend_->Copy(items, packed.Reshaped(m, dim_), /*add=*/false);
  const Tensor transposed = Row(transposed_, m);
  backend_->Transpose(packed, dim_, transposed, /*add=*/false);
  Tensor row;
  has_bias_ = !bias.empty();
  if (has_bias_) {
    row = bias_.Columns(0, m);
    backend_->Copy(bias, row.Reshaped(m, 1), /*add=*/false);
  }
  backend_->Linear(x, transposed.Reshaped(dim_, m), row, Activation::kLinear, y);
}

void ScoreProduct::Backward(Tensor x, Tensor y, Tensor dy, GradientTarget dx, GradientTarget ditems,
                            GradientTarget dbias) {
  const int64_t m = y.cols;
  LinearGradArgs args;
  args.x = x;
  args.w = Row(transposed_, m).Reshaped(dim_, m);
  args.y = y;
  args.dy = dy;
  args.dx = dx;
  const Tensor dtransposed = Row(dtransposed_, m);
  args.dw = dtransposed.Reshaped(dim_, m);
  if (has_bias_) args.db = dbias_.Columns(0, m);
  backend_->LinearGrad(args);
  if (ditems.wanted()) {
    const Tensor packed = Row(packed_, m);
    backend_->Transpose(dtransposed, m, packed, /*add=*/false);
    backend_->Copy(packed.Reshaped(m, dim_), ditems.tensor, ditems.add);
  }
  if (dbias.wanted()) {
    backend_->Copy(dbias_.Columns(0, m).Reshaped(m, 1), dbias.tensor, dbias.add);
  }
}

}  // namespace satrap
