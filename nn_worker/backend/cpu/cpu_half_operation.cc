#include "nn_worker/backend/cpu/cpu_half_operation.h"

#include <algorithm>
#include <functional>

#include "common/numeric/half.h"
#include "nn_worker/backend/cpu/host_tensor.h"

namespace satrap {
namespace {

// The maximum numbers of values and of rows in one piece of a conversion.
constexpr int64_t kPartValues = 16384;
constexpr int64_t kPartRows = 128;

// Widens the first `count` values of a row of `half` into the same row of `wide`.
void WidenRow(const Tensor& half, int64_t row, int64_t count, const Tensor& wide) {
  const absl::Span<float> to(FloatsOf(wide, row), count);
  if (half.dtype == DType::kF16) {
    F32FromF16(HalvesOf(half, row, count), to);
  } else {
    F32FromBf16(HalvesOf(half, row, count), to);
  }
}

void NarrowRow(const Tensor& wide, int64_t row, int64_t count, const Tensor& half) {
  const absl::Span<const float> from(FloatsOf(wide, row), count);
  if (half.dtype == DType::kF16) {
    F16FromF32(from, HalvesOf(half, row, count));
  } else {
    Bf16FromF32(from, HalvesOf(half, row, count));
  }
}

// Calls body(row, values) for all rows of a tensor. If the tensor has no gaps, one call covers many
// rows.
template <typename Body>
void ForRows(ForkJoinPool* pool, const Tensor& tensor, Body body) {
  const int64_t rows =
      std::clamp<int64_t>(kPartValues / std::max<int64_t>(1, tensor.cols), 1, kPartRows);
  pool->Run((tensor.rows + rows - 1) / rows, [&](int64_t part, int) {
    const int64_t begin = part * rows;
    const int64_t end = std::min(tensor.rows, begin + rows);
    if (!tensor.has_gaps()) return body(begin, (end - begin) * tensor.cols);
    for (int64_t i = begin; i < end; ++i) body(i, tensor.cols);
  });
}

void Widen(ForkJoinPool* pool, const Tensor& half, const Tensor& wide) {
  ForRows(pool, half, [&](int64_t row, int64_t count) { WidenRow(half, row, count, wide); });
}

// The column of `whole` at which `part` begins, if `part` consists of columns of the same rows;
// else -1.
int64_t ColumnWithin(const Tensor& whole, const Tensor& part) {
  if (part.dtype != whole.dtype || part.rows != whole.rows || part.stride != whole.stride)
    return -1;
  const int64_t bytes = BytesOf(part) - BytesOf(whole);
  const int64_t column = bytes / DTypeBytes(whole.dtype);
  return bytes >= 0 && column + part.cols <= whole.cols ? column : -1;
}

// Whether `next` consists of the columns that follow `tensor` in the same rows.
bool AreNeighbours(const Tensor& tensor, const Tensor& next) {
  return tensor.dtype == next.dtype && tensor.rows == next.rows && tensor.stride == next.stride &&
         BytesOf(tensor) + tensor.cols * DTypeBytes(tensor.dtype) == BytesOf(next) &&
         tensor.cols + next.cols <= tensor.stride;
}

}  // namespace

bool Is16Bit(const Tensor& tensor) {
  return tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16;
}

void Narrow(ForkJoinPool* pool, const Tensor& wide, const Tensor& half) {
  ForRows(pool, half, [&](int64_t row, int64_t count) { NarrowRow(wide, row, count, half); });
}

absl::Span<uint16_t> HalvesOf(const Tensor& tensor, int64_t row, int64_t count) {
  return {reinterpret_cast<uint16_t*>(BytesOf(tensor, row)), static_cast<size_t>(count)};
}

HalfOperation::~HalfOperation() {
  for (const Written& written : written_) Narrow(memory_.pool, written.wide, written.half);
}

Tensor HalfOperation::Rows(const Tensor& tensor) const {
  return tensor.empty() || rows_ < 0 ? tensor : tensor.Rows(begin_, rows_);
}

Tensor HalfOperation::Scratch(int64_t rows, int64_t cols) {
  if (used_ == memory_.scratch.size()) memory_.scratch.emplace_back();
  return TensorF32(memory_.scratch[used_++].Get<float>(std::max<int64_t>(1, rows * cols)), rows,
                   cols);
}

Tensor HalfOperation::FindWritten(const Tensor& half) const {
  for (const Written& written : written_) {
    const int64_t column = ColumnWithin(written.half, half);
    if (column >= 0) return written.wide.Columns(column, half.cols);
  }
  return Tensor();
}

Tensor HalfOperation::NewOperand(const Tensor& half, Use use) {
  const Tensor wide = Scratch(half.rows, half.cols);
  if (use != Use::kWrite) Widen(memory_.pool, half, wide);
  if (use != Use::kRead) written_.push_back({wide, half});
  return wide;
}

Tensor HalfOperation::Operand(const Tensor& tensor, Use use) {
  const Tensor part = Rows(tensor);
  if (part.empty() || !Is16Bit(part)) return part;
  if (use != Use::kRead) {
    if (const Tensor found = FindWritten(part); !found.empty()) return found;
  }
  return NewOperand(part, use);
}

std::vector<Tensor> HalfOperation::Operands(absl::Span<const Tensor> tensors,
                                            absl::Span<const Use> uses) {
  std::vector<Tensor> operands;
  std::vector<size_t> halves;  // those of 16 bits, by address
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(Rows(tensors[i]));
    if (!operands[i].empty() && Is16Bit(operands[i])) halves.push_back(i);
  }
  std::stable_sort(halves.begin(), halves.end(), [&](size_t a, size_t b) {
    return std::less<>()(operands[a].data, operands[b].data);
  });
  for (size_t first = 0; first < halves.size();) {
    const Use use = uses[halves[first]];
    Tensor all = operands[halves[first]];
    if (use != Use::kRead) {
      if (const Tensor found = FindWritten(all); !found.empty()) {
        operands[halves[first++]] = found;
        continue;
      }
    }
    size_t end = first + 1;
    for (; end < halves.size() && uses[halves[end]] == use; ++end) {
      const Tensor& next = operands[halves[end]];
      if (!AreNeighbours(all, next)) break;
      all.cols += next.cols;
    }
    const Tensor together = NewOperand(all, use);
    for (int64_t column = 0; first < end; ++first) {
      Tensor& operand = operands[halves[first]];
      operand = together.Columns(column, operand.cols);
      column += operand.cols;
    }
  }
  return operands;
}

std::vector<GradientTarget> HalfOperation::Targets(absl::Span<const GradientTarget> targets) {
  std::vector<Tensor> tensors;
  std::vector<Use> uses;
  for (const GradientTarget& target : targets) {
    tensors.push_back(target.tensor);
    uses.push_back(target.add ? Use::kUpdate : Use::kWrite);
  }
  tensors = Operands(tensors, uses);
  std::vector<GradientTarget> wide;
  for (size_t i = 0; i < targets.size(); ++i) wide.push_back({tensors[i], targets[i].add});
  return wide;
}

}  // namespace satrap
