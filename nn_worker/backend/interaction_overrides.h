// Declares the operations of InteractionOperations for the classes that implement them. Included
// inside the class, among its public members, so that a new operation is declared only twice: here
// and, with its formula, in interaction_operations.h.

#ifndef SATRAP_NN_WORKER_BACKEND_INTERACTION_OVERRIDES_H_
#define SATRAP_NN_WORKER_BACKEND_INTERACTION_OVERRIDES_H_

void Scale(float factor, Tensor x, Tensor y, bool add) final;
void Multiply(Tensor a, Tensor b, Tensor y, bool add) final;
void Transpose(Tensor x, int64_t width, Tensor y, bool add) final;
void BatchedProduct(const SampleMatrices& a, const SampleMatrices& b, int64_t count, float scale,
                    const SampleMatrices& y, bool add) final;
void PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
              Tensor y) final;
void PairDotsGrad(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                  Tensor dy, absl::Span<const GradientTarget> dxs) final;
void BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) final;
void BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                       absl::Span<const GradientTarget> dxs) final;
void Softmax(Tensor x, int64_t width, Tensor y) final;
void SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) final;
void Normalize(Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y,
               Tensor inverse) final;
void NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width,
                   GradientTarget dx) final;

#endif  // SATRAP_NN_WORKER_BACKEND_INTERACTION_OVERRIDES_H_
