#include "nn_worker/backend/tensor_copy.h"

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

template <typename T>
void In(Backend* backend, bool fits, absl::Span<const T> host, const Tensor& tensor) {
  CHECK(fits) << "another dtype";
  backend->CopyIn({reinterpret_cast<const uint8_t*>(host.data()), host.size() * sizeof(T)}, tensor);
}

template <typename T>
void Out(Backend* backend, bool fits, const Tensor& tensor, absl::Span<T> host) {
  CHECK(fits) << "another dtype";
  backend->CopyOut(tensor, {reinterpret_cast<uint8_t*>(host.data()), host.size() * sizeof(T)});
}

bool Is16Bit(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace

void CopyIn(Backend* backend, absl::Span<const float> host, Tensor tensor) {
  In(backend, tensor.dtype == DType::kF32, host, tensor);
}
void CopyIn(Backend* backend, absl::Span<const double> host, Tensor tensor) {
  In(backend, tensor.dtype == DType::kF64, host, tensor);
}
void CopyIn(Backend* backend, absl::Span<const uint16_t> host, Tensor tensor) {
  In(backend, Is16Bit(tensor.dtype), host, tensor);
}
void CopyIn(Backend* backend, absl::Span<const uint32_t> host, Tensor tensor) {
  In(backend, tensor.dtype == DType::kU32, host, tensor);
}
void CopyIn(Backend* backend, absl::Span<const uint8_t> host, Tensor tensor) {
  In(backend, tensor.dtype == DType::kU8, host, tensor);
}

void CopyOut(Backend* backend, Tensor tensor, absl::Span<float> host) {
  Out(backend, tensor.dtype == DType::kF32, tensor, host);
}
void CopyOut(Backend* backend, Tensor tensor, absl::Span<double> host) {
  Out(backend, tensor.dtype == DType::kF64, tensor, host);
}
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint16_t> host) {
  Out(backend, Is16Bit(tensor.dtype), tensor, host);
}
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint32_t> host) {
  Out(backend, tensor.dtype == DType::kU32, tensor, host);
}
void CopyOut(Backend* backend, Tensor tensor, absl::Span<uint8_t> host) {
  Out(backend, tensor.dtype == DType::kU8, tensor, host);
}

std::vector<float> ReadFloats(Backend* backend, Tensor tensor) {
  std::vector<float> values(tensor.size());
  CopyOut(backend, tensor, absl::MakeSpan(values));
  backend->Sync();
  return values;
}

std::vector<double> ReadDoubles(Backend* backend, Tensor tensor) {
  std::vector<double> values(tensor.size());
  CopyOut(backend, tensor, absl::MakeSpan(values));
  backend->Sync();
  return values;
}

absl::StatusOr<Tensor> AllocateTensor(Backend* backend, DType dtype, int64_t rows, int64_t cols,
                                      int64_t stride) {
  if (stride == 0) stride = cols;
  CHECK(stride >= cols) << stride << " < " << cols;
  ASSIGN_OR_RETURN(void* data, backend->Allocate(rows * stride * DTypeBytes(dtype)));
  return Tensor{dtype, data, rows, cols, stride};
}

absl::StatusOr<Tensor> AllocateControl(Backend* backend) {
  ASSIGN_OR_RETURN(const Tensor control,
                   AllocateTensor(backend, DType::kU8, 1, sizeof(StepControl)));
  const StepControl initial;
  backend->CopyIn({reinterpret_cast<const uint8_t*>(&initial), sizeof(initial)}, control);
  return control;
}

StepControl ReadControl(Backend* backend, Tensor control) {
  StepControl copy;
  backend->CopyOut(control, {reinterpret_cast<uint8_t*>(&copy), sizeof(copy)});
  backend->Sync();
  return copy;
}

absl::StatusOr<Tensor> AllocatePassNumbers(Backend* backend) {
  return AllocateTensor(backend, DType::kU8, 1, sizeof(PassNumbers));
}

void WritePassNumbers(Backend* backend, const PassNumbers& numbers, Tensor memory) {
  backend->CopyIn({reinterpret_cast<const uint8_t*>(&numbers), sizeof(numbers)}, memory);
}

}  // namespace satrap
