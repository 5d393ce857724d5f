// The lists of the operations in InteractionOperations and LossOperations, for the backends that
// implement them. Each entry lists an operation's parameters and states how it uses its operands.
// So a new operation is declared only twice: with its formula in interaction_operations.h or
// loss_operations.h, and with its operands here.
//
//   SATRAP_INTERACTION_OPERATIONS(OPERATION) and SATRAP_LOSS_OPERATIONS(OPERATION) expand to
//   OPERATION(name, parameters, rows, operands...) for each operation.
//
// Backends whose operations are written by hand use the lists to declare them. CpuHalfBackend also
// generates the bodies of its operations from the operands (cpu/cpu_half_backend.cc). The operands
// are the following words. A wrong word gives wrong values, which HalfConformance finds:
//
//   InBlocks        each row that is written depends only on the same row of the inputs
//   Whole           rows depend on other rows, too, or operands have different numbers of rows
//   In, Ins         a tensor, or several, with values of samples, which are read
//   Out             a tensor that is written; with `add`, added to
//   Grad, Grads     the target, or targets, of gradients
//   InMatrices      matrices of samples, which are read
//   AddMatrices     matrices in a part of a tensor that are written or added to; the rest is kept
//   anything else   is passed on unchanged, like all operands of losses, which are always F32

#ifndef SATRAP_NN_WORKER_BACKEND_OPERATION_OPERANDS_H_
#define SATRAP_NN_WORKER_BACKEND_OPERATION_OPERANDS_H_

#define SATRAP_INTERACTION_OPERATIONS(OPERATION)                                                   \
  OPERATION(Scale, (float factor, Tensor x, Tensor y, bool add), InBlocks, factor, In{x},          \
            Out{y, add}, add)                                                                      \
  OPERATION(Multiply, (Tensor a, Tensor b, Tensor y, bool add), Whole, In{a}, In{b}, Out{y, add},  \
            add)                                                                                   \
  OPERATION(Transpose, (Tensor x, int64_t width, Tensor y, bool add), InBlocks, In{x}, width,      \
            Out{y, add}, add)                                                                      \
  OPERATION(BatchedProduct,                                                                        \
            (const SampleMatrices& a, const SampleMatrices& b, int64_t count, float scale,         \
             const SampleMatrices& y, bool add),                                                   \
            Whole, InMatrices{a}, InMatrices{b}, count, scale, AddMatrices{y}, add)                \
  OPERATION(                                                                                       \
      PairDots,                                                                                    \
      (absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim, Tensor y),      \
      InBlocks, Ins{xs}, terms, dim, Out{y})                                                       \
  OPERATION(PairDotsGrad,                                                                          \
            (absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,           \
             Tensor dy, absl::Span<const GradientTarget> dxs),                                     \
            InBlocks, Ins{xs}, terms, dim, In{dy}, Grads{dxs})                                     \
  OPERATION(BiInteraction, (absl::Span<const Tensor> xs, Tensor s, Tensor y), InBlocks, Ins{xs},   \
            Out{s}, Out{y})                                                                        \
  OPERATION(                                                                                       \
      BiInteractionGrad,                                                                           \
      (absl::Span<const Tensor> xs, Tensor s, Tensor dy, absl::Span<const GradientTarget> dxs),    \
      InBlocks, Ins{xs}, In{s}, In{dy}, Grads{dxs})                                                \
  OPERATION(Softmax, (Tensor x, int64_t width, Tensor y), InBlocks, In{x}, width, Out{y})          \
  OPERATION(SoftmaxGrad, (Tensor y, Tensor dy, int64_t width, GradientTarget dx), InBlocks, In{y}, \
            In{dy}, width, Grad{dx})                                                               \
  OPERATION(                                                                                       \
      Normalize,                                                                                   \
      (Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y, Tensor inverse),      \
      InBlocks, kind, In{x}, width, epsilon, Out{y}, Out{inverse})                                 \
  OPERATION(                                                                                       \
      NormalizeGrad,                                                                               \
      (Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width, GradientTarget dx), \
      InBlocks, kind, In{y}, In{inverse}, In{dy}, width, Grad{dx})

#define SATRAP_LOSS_OPERATIONS(OPERATION)                                                         \
  OPERATION(BceWithLogits,                                                                        \
            (Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,           \
             Tensor dlogits, Tensor sums),                                                        \
            Whole, control, logits, labels, weights, mask, dlogits, sums)                         \
  OPERATION(SquaredError,                                                                         \
            (Tensor control, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,          \
             Tensor doutputs, Tensor sums),                                                       \
            Whole, control, outputs, labels, weights, mask, doutputs, sums)                       \
  OPERATION(                                                                                      \
      PairwiseLogistic,                                                                           \
      (Tensor control, Tensor scores, Tensor pairs, Tensor weights, Tensor dscores, Tensor sums), \
      Whole, control, scores, pairs, weights, dscores, sums)                                      \
  OPERATION(SoftmaxCrossEntropy,                                                                  \
            (Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,           \
             Tensor dlogits, Tensor sums),                                                        \
            Whole, control, logits, labels, weights, mask, dlogits, sums)                         \
  OPERATION(CandidateLoss, (Tensor control, const CandidateLossArgs& args), Whole, control, args)

// Declares one operation in a class; its body is in the class's source file.
#define SATRAP_DECLARE_OPERATION(name, parameters, ...) void name parameters final;

#endif  // SATRAP_NN_WORKER_BACKEND_OPERATION_OPERANDS_H_
