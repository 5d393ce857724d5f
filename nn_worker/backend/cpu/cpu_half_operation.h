// The operands of one operation on tensors of 16 bits, in f32, for CpuHalfBackend
// (cpu_half_backend.h): an F32 tensor is its own operand, a 16-bit one has a copy in scratch
// memory, without gaps. The destructor rounds what was written back to 16 bits.
//
// An operation may be about a block of rows alone, so that its copies are small enough for a cache.
//
//     HalfOperation operation(&memory, begin, rows);
//     inner->Activate(activation, operation.Read(x), operation.Write(y));
//
// Tensors that lie side by side in one concatenation, as the inputs of a sum usually do, are
// converted together, whatever their order.
//
// Thread-compatible. One operation at a time uses a HalfMemory.

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

// `count` values from the beginning of a row of 16-bit values on.
absl::Span<uint16_t> HalvesOf(const Tensor& tensor, int64_t row, int64_t count);

// The memory that operations work with. Scratch memory grows to the largest operation. It is a
// deque, because a deque does not move what it holds.
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

  // The operation's rows, as they are.
  Tensor Rows(const Tensor& tensor) const;

  // The operation's rows in f32, for as long as it lives; an empty tensor stays empty. Every value
  // of a tensor that is only written must be written. A tensor that is written twice, as a gradient
  // that two inputs share, has one copy.
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

  // Memory for F32 (rows, cols), for as long as the operation lives.
  Tensor Scratch(int64_t rows, int64_t cols);

 private:
  enum class Use { kRead, kWrite, kUpdate };
  struct Written {
    Tensor wide, half;
  };

  Tensor Operand(const Tensor& tensor, Use use);
  std::vector<Tensor> Operands(absl::Span<const Tensor> tensors, absl::Span<const Use> uses);
  // The copy of `half`, if it is written already; else empty.
  Tensor FindWritten(const Tensor& half) const;
  Tensor NewOperand(const Tensor& half, Use use);

  HalfMemory& memory_;
  const int64_t begin_ = 0, rows_ = -1;
  size_t used_ = 0;  // of memory_.scratch
  std::vector<Written> written_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_CPU_HALF_OPERATION_H_
