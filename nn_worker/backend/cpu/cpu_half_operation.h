// The f32 operands of one operation on 16-bit tensors, for CpuHalfBackend (cpu_half_backend.h). An
// F32 tensor is its own operand; a 16-bit tensor has an f32 copy in scratch memory, without gaps.
// The destructor rounds the copies that were written and stores them in their 16-bit tensors.
//
// An operation may cover only a block of rows, so that its copies are small enough for a cache.
//
//     HalfOperation operation(&memory, begin, rows);
//     inner->Activate(activation, operation.Read(x), operation.Write(y));
//
// Tensors side by side in one concatenation, as the inputs of a sum usually are, are converted
// together, whatever their order.
//
// Thread-compatible. Only one operation at a time may use a HalfMemory.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_OPERATION_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/span.h"
#include "common/thread/fork_join_pool.h"
#include "nn_worker/backend/cpu/cpu_matrix.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {

bool Is16Bit(const Tensor& tensor);

// The first `count` values of a row of 16-bit values.
absl::Span<uint16_t> HalvesOf(const Tensor& tensor, int64_t row, int64_t count);

// The memory that operations work with. It grows to the needs of the largest operation. `scratch`
// is a deque, because a deque does not move its elements.
struct HalfMemory {
  ForkJoinPool* pool;  // not owned
  std::deque<AlignedScratch> scratch;
};

// half := wide, rounded to nearest, ties to even. The shapes are equal.
void Narrow(ForkJoinPool* pool, const Tensor& wide, const Tensor& half);

class HalfOperation {
 public:
  // An operation on all rows.
  explicit HalfOperation(HalfMemory* memory) : memory_(*memory) {}
  // An operation on rows [begin, begin + rows) of every tensor that it gets. REQUIRES: rows >= 0
  HalfOperation(HalfMemory* memory, int64_t begin, int64_t rows)
      : memory_(*memory), begin_(begin), rows_(rows) {}
  ~HalfOperation();
  HalfOperation(const HalfOperation&) = delete;
  HalfOperation& operator=(const HalfOperation&) = delete;

  int64_t begin() const { return begin_; }
  int64_t rows() const { return rows_; }  // -1: all

  // The operation's rows of `tensor`, without conversion.
  Tensor Rows(const Tensor& tensor) const;

  // The operation's rows of a tensor in f32, valid while this object lives; an empty tensor stays
  // empty. After Write, the caller must write every value. A tensor that is passed twice to be
  // written, such as a gradient that two inputs share, has only one copy.
  Tensor Read(const Tensor& tensor) { return Operand(tensor, Use::kRead); }
  Tensor Write(const Tensor& tensor) { return Operand(tensor, Use::kWrite); }
  Tensor Update(const Tensor& tensor) { return Operand(tensor, Use::kUpdate); }  // reads and writes
  Tensor Output(const Tensor& tensor, bool add) { return add ? Update(tensor) : Write(tensor); }
  GradientTarget Target(const GradientTarget& target) {
    return {Output(target.tensor, target.add), target.add};
  }
  std::vector<Tensor> ReadAll(absl::Span<const Tensor> tensors) {
    return Operands(tensors, std::vector<Use>(tensors.size(), Use::kRead));
  }
  std::vector<Tensor> WriteAll(absl::Span<const Tensor> tensors) {
    return Operands(tensors, std::vector<Use>(tensors.size(), Use::kWrite));
  }
  std::vector<GradientTarget> Targets(absl::Span<const GradientTarget> targets);

  // Memory for an F32 tensor (rows, cols), valid while this object lives.
  Tensor Scratch(int64_t rows, int64_t cols);

 private:
  enum class Use { kRead, kWrite, kUpdate };
  struct Written {
    Tensor wide, half;
  };

  Tensor Operand(const Tensor& tensor, Use use);
  std::vector<Tensor> Operands(absl::Span<const Tensor> tensors, absl::Span<const Use> uses);
  // The copy of `half` that was made for writing; empty if there is none yet.
  Tensor FindWritten(const Tensor& half) const;
  Tensor NewOperand(const Tensor& half, Use use);

  HalfMemory& memory_;
  const int64_t begin_ = 0, rows_ = -1;
  size_t used_ = 0;  // of memory_.scratch
  std::vector<Written> written_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_OPERATION_H_
