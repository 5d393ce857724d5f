#include "nn_worker/backend/testing/deferred_backend.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "nn_worker/backend/testing/deferred_lanes.h"
#include "nn_worker/backend/testing/deferred_memory.h"

namespace satrap {
namespace {

using deferred::Lanes;
using deferred::Pages;
using deferred::PinnedMemory;

using Tensors = std::vector<Tensor>;
using Targets = std::vector<GradientTarget>;

struct DeferredEvent final : BackendEvent {
  Lanes::Point point;
  bool polled = false;  // since it was recorded
};

// Runs nothing before somebody waits for it, the latest that the contract allows, and lets the host
// reach memory only while a view is open. Code that reads a result too early gets a segmentation
// fault at that line, on a CPU, and not wrong numbers on a GPU.
class DeferredBackend final : public Backend {
 public:
  DeferredBackend(std::unique_ptr<Backend> inner, HostAccess host_access)
      : inner_(std::move(inner)), host_access_(host_access) {}
  ~DeferredBackend() override {
    for (uint8_t* data : pinned_allocations_) pinned_->Free(data, 0);
  }

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    // mmap refuses 0 bytes, which are legal here.
    auto pages = std::make_unique<Pages>(std::max<int64_t>(1, bytes));
    char* const outer = pages->outer();
    MutexLock lock(&mutex_);
    memory_[outer] = std::move(pages);
    return outer;
  }
  absl::StatusOr<void*> AllocatePinned(int64_t bytes) override {
    uint8_t* const data = pinned_->Allocate(static_cast<size_t>(std::max<int64_t>(1, bytes)));
    std::fill_n(data, bytes, uint8_t{0});
    MutexLock lock(&mutex_);
    pinned_allocations_.push_back(data);
    return data;
  }
  std::shared_ptr<BufferAllocator> PinnedBuffers() override { return pinned_; }
  bool IsPinned(const void* host, int64_t bytes) const override {
    return pinned_->Holds(static_cast<const uint8_t*>(host), bytes);
  }
  // The values go along: the caller may reuse its array at once.
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    Defer([this, device = Inner(device), values = std::vector<uint8_t>(host.begin(), host.end())] {
      inner_->CopyIn(values, device);
    });
  }
  // The span stays the caller's: it is filled when somebody waits, and must live until then.
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override {
    Defer([this, device = Inner(device), host] { inner_->CopyOut(device, host); });
  }
  // Unlike CopyIn, it reads the host's memory when the copy runs.
  void StartCopyIn(absl::Span<const uint8_t> pinned, Tensor device) override {
    CheckPinned(pinned.data(), pinned.size(), device);
    Enqueue(Lane::kCopiesIn,
            [this, device = Inner(device), pinned] { inner_->CopyIn(pinned, device); });
  }
  void StartCopyOut(Tensor device, absl::Span<uint8_t> pinned) override {
    CheckPinned(pinned.data(), pinned.size(), device);
    Enqueue(Lane::kCopiesOut,
            [this, device = Inner(device), pinned] { inner_->CopyOut(device, pinned); });
  }
  absl::StatusOr<std::unique_ptr<BackendEvent>> NewEvent() override {
    return std::make_unique<DeferredEvent>();
  }
  void Record(Lane lane, BackendEvent* event) override {
    MutexLock lock(&mutex_);
    auto* const deferred = static_cast<DeferredEvent*>(event);
    deferred->point = lanes_.End(lane);
    deferred->polled = false;
  }
  void WaitFor(Lane lane, BackendEvent* event) override {
    MutexLock lock(&mutex_);
    lanes_.WaitFor(lane, static_cast<DeferredEvent*>(event)->point);
  }
  // Nothing has run at the first call, and what the event stands for at the second.
  absl::StatusOr<bool> Poll(BackendEvent* event) override {
    MutexLock lock(&mutex_);
    auto* const deferred = static_cast<DeferredEvent*>(event);
    if (lanes_.Reached(deferred->point)) return true;
    if (!std::exchange(deferred->polled, true)) return false;
    lanes_.RunTo(deferred->point);
    return true;
  }
  void* HostView(void* device) override {
    if (host_access_ == HostAccess::kNone) return nullptr;
    MutexLock lock(&mutex_);
    CHECK(lanes_.Empty(Lane::kOperations)) << "HostView without a Sync before it";
    // Only the one that was asked for: a neighbour that is reached by a wrong index stays closed.
    PagesOf(device, 0)->SetOpen(true);
    return device;
  }
  // Null for both kinds of access: a device that shows its memory need not see the host's.
  void* DeviceView(void*) override { return nullptr; }
  void Sync() override {
    MutexLock lock(&mutex_);
    lanes_.RunAll();
    // An inner backend may defer, too.
    inner_->Sync();
  }

  void Fill(Tensor y, float value) override {
    Defer([this, y = Inner(y), value] { inner_->Fill(y, value); });
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    Defer([this, x = Inner(x), y = Inner(y), add] { inner_->Copy(x, y, add); });
  }
  void ToF32(Tensor x, Tensor y) override {
    Defer([this, x = Inner(x), y = Inner(y)] { inner_->ToF32(x, y); });
  }
  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    Defer([this, x = Inner(x), w = Inner(w), bias = Inner(bias), activation, y = Inner(y)] {
      inner_->Linear(x, w, bias, activation, y);
    });
  }
  void LinearGrad(const LinearGradArgs& args) override {
    Defer([this, args = Inner(args)] { inner_->LinearGrad(args); });
  }
  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    Defer([this, x = Inner(x), bias = Inner(bias), y = Inner(y)] { inner_->AddBias(x, bias, y); });
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    Defer([this, x = Inner(x), sums = Inner(sums)] { inner_->ColumnSum(x, sums); });
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    Defer([this, activation, x = Inner(x), y = Inner(y)] { inner_->Activate(activation, x, y); });
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    Defer([this, activation, y = Inner(y), dy = Inner(dy), dx = Inner(dx)] {
      inner_->ActivateGrad(activation, y, dy, dx);
    });
  }
  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    Defer([this, xs = Inner(xs), y = Inner(y)] { inner_->RowSum(xs, y); });
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    Defer([this, dy = Inner(dy), dxs = Inner(dxs)] { inner_->RowSumGrad(dy, dxs); });
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    Defer([this, xs = Inner(xs), s = Inner(s), y = Inner(y)] { inner_->Fm(xs, s, y); });
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    Defer([this, xs = Inner(xs), s = Inner(s), dy = Inner(dy), dxs = Inner(dxs)] {
      inner_->FmGrad(xs, s, dy, dxs);
    });
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    Defer([this, pooling, x = Inner(x), lengths = Inner(lengths), y = Inner(y)] {
      inner_->SequencePool(pooling, x, lengths, y);
    });
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    Defer([this, pooling, x = Inner(x), lengths = Inner(lengths), y = Inner(y), dy = Inner(dy),
           dx = Inner(dx)] { inner_->SequencePoolGrad(pooling, x, lengths, y, dy, dx); });
  }
  void Scale(float factor, Tensor x, Tensor y, bool add) override {
    Defer([this, factor, x = Inner(x), y = Inner(y), add] { inner_->Scale(factor, x, y, add); });
  }
  void Multiply(Tensor a, Tensor b, Tensor y, bool add) override {
    Defer(
        [this, a = Inner(a), b = Inner(b), y = Inner(y), add] { inner_->Multiply(a, b, y, add); });
  }
  void Transpose(Tensor x, int64_t width, Tensor y, bool add) override {
    Defer([this, x = Inner(x), width, y = Inner(y), add] { inner_->Transpose(x, width, y, add); });
  }
  void BatchedProduct(const SampleMatrices& a, const SampleMatrices& b, int64_t count, float scale,
                      const SampleMatrices& y, bool add) override {
    Defer([this, a = Inner(a), b = Inner(b), count, scale, y = Inner(y), add] {
      inner_->BatchedProduct(a, b, count, scale, y, add);
    });
  }
  void PairDots(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                Tensor y) override {
    Defer([this, xs = Inner(xs), terms = std::vector<PairTerm>(terms.begin(), terms.end()), dim,
           y = Inner(y)] { inner_->PairDots(xs, terms, dim, y); });
  }
  void PairDotsGrad(absl::Span<const Tensor> xs, absl::Span<const PairTerm> terms, int64_t dim,
                    Tensor dy, absl::Span<const GradientTarget> dxs) override {
    Defer([this, xs = Inner(xs), terms = std::vector<PairTerm>(terms.begin(), terms.end()), dim,
           dy = Inner(dy), dxs = Inner(dxs)] { inner_->PairDotsGrad(xs, terms, dim, dy, dxs); });
  }
  void BiInteraction(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    Defer([this, xs = Inner(xs), s = Inner(s), y = Inner(y)] { inner_->BiInteraction(xs, s, y); });
  }
  void BiInteractionGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
                         absl::Span<const GradientTarget> dxs) override {
    Defer([this, xs = Inner(xs), s = Inner(s), dy = Inner(dy), dxs = Inner(dxs)] {
      inner_->BiInteractionGrad(xs, s, dy, dxs);
    });
  }
  void Softmax(Tensor x, int64_t width, Tensor y) override {
    Defer([this, x = Inner(x), width, y = Inner(y)] { inner_->Softmax(x, width, y); });
  }
  void SoftmaxGrad(Tensor y, Tensor dy, int64_t width, GradientTarget dx) override {
    Defer([this, y = Inner(y), dy = Inner(dy), width, dx = Inner(dx)] {
      inner_->SoftmaxGrad(y, dy, width, dx);
    });
  }
  void Normalize(Normalization kind, Tensor x, int64_t width, float epsilon, Tensor y,
                 Tensor inverse) override {
    Defer([this, kind, x = Inner(x), width, epsilon, y = Inner(y), inverse = Inner(inverse)] {
      inner_->Normalize(kind, x, width, epsilon, y, inverse);
    });
  }
  void NormalizeGrad(Normalization kind, Tensor y, Tensor inverse, Tensor dy, int64_t width,
                     GradientTarget dx) override {
    Defer([this, kind, y = Inner(y), inverse = Inner(inverse), dy = Inner(dy), width,
           dx = Inner(dx)] { inner_->NormalizeGrad(kind, y, inverse, dy, width, dx); });
  }
  void Dropout(Tensor x, const DropoutMask& mask, float rate, Tensor y, bool add) override {
    Defer([this, x = Inner(x), mask, rate, y = Inner(y), add] {
      inner_->Dropout(x, mask, rate, y, add);
    });
  }
  void Moments(Tensor x, Tensor sums) override {
    Defer([this, x = Inner(x), sums = Inner(sums)] { inner_->Moments(x, sums); });
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    Defer([this, x = Inner(x), sums = Inner(sums), epsilon, gamma = Inner(gamma),
           beta = Inner(beta), stats = Inner(stats),
           y = Inner(y)] { inner_->BatchNorm(x, sums, epsilon, gamma, beta, stats, y); });
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    Defer([this, x = Inner(x), mean = Inner(mean), variance = Inner(variance), epsilon,
           gamma = Inner(gamma), beta = Inner(beta),
           y = Inner(y)] { inner_->BatchNormFixed(x, mean, variance, epsilon, gamma, beta, y); });
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    Defer([this, x = Inner(x), stats = Inner(stats), dy = Inner(dy), grad_sums = Inner(grad_sums)] {
      inner_->BatchNormGradSums(x, stats, dy, grad_sums);
    });
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    Defer([this, x = Inner(x), stats = Inner(stats), gamma = Inner(gamma), dy = Inner(dy),
           sums = Inner(sums), grad_sums = Inner(grad_sums),
           dx = Inner(dx)] { inner_->BatchNormGrad(x, stats, gamma, dy, sums, grad_sums, dx); });
  }
  void BatchNormRunning(Tensor control, Tensor sums, float momentum, Tensor mean,
                        Tensor variance) override {
    Defer([this, control = Inner(control), sums = Inner(sums), momentum, mean = Inner(mean),
           variance = Inner(variance)] {
      inner_->BatchNormRunning(control, sums, momentum, mean, variance);
    });
  }
  void BceWithLogits(Tensor control, Tensor logits, Tensor labels, Tensor weights, Tensor mask,
                     Tensor dlogits, Tensor sums) override {
    Defer([this, control = Inner(control), logits = Inner(logits), labels = Inner(labels),
           weights = Inner(weights), mask = Inner(mask), dlogits = Inner(dlogits),
           sums = Inner(sums)] {
      inner_->BceWithLogits(control, logits, labels, weights, mask, dlogits, sums);
    });
  }
  void SquaredError(Tensor control, Tensor outputs, Tensor labels, Tensor weights, Tensor mask,
                    Tensor doutputs, Tensor sums) override {
    Defer([this, control = Inner(control), outputs = Inner(outputs), labels = Inner(labels),
           weights = Inner(weights), mask = Inner(mask), doutputs = Inner(doutputs),
           sums = Inner(sums)] {
      inner_->SquaredError(control, outputs, labels, weights, mask, doutputs, sums);
    });
  }
  void PairwiseLogistic(Tensor control, Tensor scores, Tensor pairs, Tensor weights, Tensor dscores,
                        Tensor sums) override {
    Defer([this, control = Inner(control), scores = Inner(scores), pairs = Inner(pairs),
           weights = Inner(weights), dscores = Inner(dscores), sums = Inner(sums)] {
      inner_->PairwiseLogistic(control, scores, pairs, weights, dscores, sums);
    });
  }
  void SoftmaxCrossEntropy(Tensor control, Tensor logits, Tensor labels, Tensor weights,
                           Tensor mask, Tensor dlogits, Tensor sums) override {
    Defer([this, control = Inner(control), logits = Inner(logits), labels = Inner(labels),
           weights = Inner(weights), mask = Inner(mask), dlogits = Inner(dlogits),
           sums = Inner(sums)] {
      inner_->SoftmaxCrossEntropy(control, logits, labels, weights, mask, dlogits, sums);
    });
  }
  void CandidateLoss(Tensor control, const CandidateLossArgs& args) override {
    CandidateLossArgs inner = args;
    for (Tensor* tensor :
         {&inner.scores, &inner.items, &inner.positives, &inner.log_q, &inner.positive_log_q,
          &inner.weights, &inner.mask, &inner.dscores, &inner.sums}) {
      *tensor = Inner(*tensor);
    }
    Defer([this, control = Inner(control), inner] { inner_->CandidateLoss(control, inner); });
  }
  void GatherRows(absl::Span<const FeatureExchange> features) override {
    Defer([this, features = Inner(features)] { inner_->GatherRows(features); });
  }
  void ScatterGradients(absl::Span<const FeatureExchange> features, const RowInverse& inverse,
                        Tensor gradients) override {
    Defer([this, features = Inner(features), starts = Inner(inverse.starts),
           positions = Inner(inverse.positions), gradients = Inner(gradients)] {
      inner_->ScatterGradients(features, {starts, positions}, gradients);
    });
  }
  bool ScattersByRow() const override { return inner_->ScattersByRow(); }
  void CountBeyond(Tensor x, float limit, Tensor count) override {
    Defer([this, x = Inner(x), limit, count = Inner(count)] {
      inner_->CountBeyond(x, limit, count);
    });
  }
  void DecideStep(const StepPlan& plan, Tensor sums, Tensor control) override {
    Defer([this, plan, sums = Inner(sums), control = Inner(control)] {
      inner_->DecideStep(plan, sums, control);
    });
  }
  void OptimizerStep(Tensor control, const OptimizerRule& rule, Tensor gradient, Tensor w,
                     absl::Span<const Tensor> slots, absl::Span<const WeightCopy> copies) override {
    std::vector<WeightCopy> inner(copies.begin(), copies.end());
    for (WeightCopy& copy : inner) copy.values = Inner(copy.values);
    Defer([this, control = Inner(control), rule, gradient = Inner(gradient), w = Inner(w),
           slots = Inner(slots), copies = std::move(inner)] {
      inner_->OptimizerStep(control, rule, gradient, w, slots, copies);
    });
  }
  void AverageStep(Tensor control, float decay, Tensor w, Tensor average) override {
    Defer([this, control = Inner(control), decay, w = Inner(w), average = Inner(average)] {
      inner_->AverageStep(control, decay, w, average);
    });
  }

 private:
  void Enqueue(Lane lane, std::function<void()> entry) {
    MutexLock lock(&mutex_);
    lanes_.Enqueue(lane, std::move(entry));
  }
  void Defer(std::function<void()> operation) { Enqueue(Lane::kOperations, std::move(operation)); }

  void CheckPinned(const uint8_t* host, size_t bytes, const Tensor& device) const {
    CHECK(static_cast<int64_t>(bytes) == device.size_bytes() && !device.has_gaps()) << bytes;
    CHECK(bytes == 0 || IsPinned(host, static_cast<int64_t>(bytes)))
        << "a copy on a lane of its own, from or to memory that is not pinned";
  }

  // The allocation that holds [p, p + bytes).
  Pages* PagesOf(const void* p, int64_t bytes) const REQUIRES(mutex_) {
    auto after = memory_.upper_bound(static_cast<char*>(const_cast<void*>(p)));
    CHECK(after != memory_.begin()) << "memory of another backend, or of the host";
    Pages* const pages = std::prev(after)->second.get();
    CHECK(pages->Hold(p, bytes)) << "memory of another backend, or of the host";
    return pages;
  }
  // What an operation is given, as the inner backend gets it. Also checks that every value lies in
  // one allocation of this backend.
  Tensor Inner(Tensor tensor) const {
    if (tensor.empty() || tensor.rows == 0 || tensor.cols == 0) return tensor;
    CHECK(tensor.cols <= tensor.stride || tensor.rows == 1);
    const int64_t values = (tensor.rows - 1) * tensor.stride + tensor.cols;
    MutexLock lock(&mutex_);
    Pages* const pages = PagesOf(tensor.data, values * DTypeBytes(tensor.dtype));
    pages->SetOpen(false);  // a view ends here
    tensor.data = pages->Inner(tensor.data);
    return tensor;
  }
  GradientTarget Inner(const GradientTarget& target) const {
    return {Inner(target.tensor), target.add};
  }
  // Copies: the caller's arrays may be gone when the operation runs.
  Tensors Inner(absl::Span<const Tensor> tensors) const {
    Tensors all;
    for (const Tensor& tensor : tensors) all.push_back(Inner(tensor));
    return all;
  }
  Targets Inner(absl::Span<const GradientTarget> targets) const {
    Targets all;
    for (const GradientTarget& target : targets) all.push_back(Inner(target));
    return all;
  }
  std::vector<FeatureExchange> Inner(absl::Span<const FeatureExchange> features) const {
    std::vector<FeatureExchange> all(features.begin(), features.end());
    for (FeatureExchange& feature : all) {
      for (Tensor* tensor :
           {&feature.rows, &feature.ids, &feature.offsets, &feature.weights, &feature.lengths}) {
        *tensor = Inner(*tensor);
      }
      for (RowSegment& segment : feature.segments) segment.values = Inner(segment.values);
    }
    return all;
  }
  SampleMatrices Inner(SampleMatrices matrices) const {
    matrices.tensor = Inner(matrices.tensor);
    return matrices;
  }
  LinearGradArgs Inner(LinearGradArgs args) const {
    for (Tensor* tensor :
         {&args.x, &args.w, &args.y, &args.dy, &args.dx.tensor, &args.dw, &args.db}) {
      *tensor = Inner(*tensor);
    }
    return args;
  }

  const std::unique_ptr<Backend> inner_;
  const HostAccess host_access_;
  const std::shared_ptr<PinnedMemory> pinned_ = std::make_shared<PinnedMemory>();

  // Taken by every call, because a thread may copy in while another trains. Entries of lanes run
  // under it; they call the inner backend only.
  mutable Mutex mutex_;
  // By the address that the caller sees.
  std::map<char*, std::unique_ptr<Pages>> memory_ GUARDED_BY(mutex_);
  std::vector<uint8_t*> pinned_allocations_ GUARDED_BY(mutex_);
  Lanes lanes_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Backend> NewDeferredBackend(std::unique_ptr<Backend> inner,
                                            HostAccess host_access) {
  return std::make_unique<DeferredBackend>(std::move(inner), host_access);
}

}  // namespace satrap
