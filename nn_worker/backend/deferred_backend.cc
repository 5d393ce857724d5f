#include "nn_worker/backend/deferred_backend.h"

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace satrap {
namespace {

// Access is set by page, so every allocation begins on one.
constexpr int64_t kPageBytes = 4096;

// Pages of their own, zeroed, that may be closed to every access.
class Pages {
 public:
  explicit Pages(int64_t bytes)
      : bytes_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes),
        data_(mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    CHECK(data_ != MAP_FAILED);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void* data() const { return data_; }
  bool Holds(const void* p) const {
    const char* begin = static_cast<const char*>(data_);
    return p >= begin && p < begin + bytes_;
  }
  void SetOpen(bool open) {
    if (open == open_) return;
    CHECK(mprotect(data_, bytes_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    open_ = open;
  }

 private:
  const int64_t bytes_;
  void* const data_;
  bool open_ = false;
};

using Tensors = std::vector<Tensor>;
using Targets = std::vector<GradientTarget>;

// An operation keeps copies of its spans: the caller's arrays may be gone when it runs.
Tensors Copies(absl::Span<const Tensor> tensors) { return {tensors.begin(), tensors.end()}; }
Targets Copies(absl::Span<const GradientTarget> targets) {
  return {targets.begin(), targets.end()};
}

// Runs nothing before a Sync, the latest that the contract allows, and lets the host reach memory only
// while a view is open. Code that reads a result too early gets a segmentation fault at that line,
// on a CPU, and not wrong numbers on a GPU.
class DeferredBackend final : public Backend {
 public:
  DeferredBackend(std::unique_ptr<Backend> inner, HostAccess host_access)
      : inner_(std::move(inner)), host_access_(host_access) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    // mmap refuses 0 bytes, which are legal here.
    memory_.push_back(std::make_unique<Pages>(std::max<int64_t>(1, bytes)));
    return memory_.back()->data();
  }
  // The values go along: the caller may reuse its array at once.
  void CopyIn(absl::Span<const float> host, float* device) override {
    Defer([=, this, values = std::vector<float>(host.begin(), host.end())] {
      inner_->CopyIn(values, device);
    });
  }
  void CopyIn(absl::Span<const double> host, double* device) override {
    Defer([=, this, values = std::vector<double>(host.begin(), host.end())] {
      inner_->CopyIn(values, device);
    });
  }
  // The span stays the caller's: it is filled by the next Sync, and must live until then.
  void CopyOut(const float* device, absl::Span<float> host) override {
    Defer([=, this] { inner_->CopyOut(device, host); });
  }
  void CopyOut(const double* device, absl::Span<double> host) override {
    Defer([=, this] { inner_->CopyOut(device, host); });
  }
  void* HostView(void* device) override {
    if (host_access_ == HostAccess::kNone) return nullptr;
    CHECK(deferred_.empty()) << "HostView without a Sync before it";
    // Only the one that was asked for: a neighbour that is reached by a wrong index stays closed.
    for (const std::unique_ptr<Pages>& pages : memory_) {
      if (pages->Holds(device)) pages->SetOpen(true);
    }
    return device;
  }
  void Sync() override {
    if (deferred_.empty()) return;  // views stay open until the next operation
    for (const std::unique_ptr<Pages>& pages : memory_) pages->SetOpen(true);
    for (const std::function<void()>& operation : deferred_) operation();
    // An inner backend may defer, too, and works on the pages until then.
    inner_->Sync();
    deferred_.clear();
    Close();
  }

  void Fill(Tensor y, float value) override {
    Defer([=, this] { inner_->Fill(y, value); });
  }
  void Copy(Tensor x, Tensor y, bool add) override {
    Defer([=, this] { inner_->Copy(x, y, add); });
  }
  void ToF32(Tensor x, Tensor y) override {
    Defer([=, this] { inner_->ToF32(x, y); });
  }
  void Linear(Tensor x, Tensor w, Tensor bias, Activation activation, Tensor y) override {
    Defer([=, this] { inner_->Linear(x, w, bias, activation, y); });
  }
  void LinearGrad(const LinearGradArgs& args) override {
    Defer([=, this] { inner_->LinearGrad(args); });
  }
  void AddBias(Tensor x, Tensor bias, Tensor y) override {
    Defer([=, this] { inner_->AddBias(x, bias, y); });
  }
  void ColumnSum(Tensor x, Tensor sums) override {
    Defer([=, this] { inner_->ColumnSum(x, sums); });
  }
  void Activate(Activation activation, Tensor x, Tensor y) override {
    Defer([=, this] { inner_->Activate(activation, x, y); });
  }
  void ActivateGrad(Activation activation, Tensor y, Tensor dy, GradientTarget dx) override {
    Defer([=, this] { inner_->ActivateGrad(activation, y, dy, dx); });
  }
  void RowSum(absl::Span<const Tensor> xs, Tensor y) override {
    Defer([=, this, xs = Copies(xs)] { inner_->RowSum(xs, y); });
  }
  void RowSumGrad(Tensor dy, absl::Span<const GradientTarget> dxs) override {
    Defer([=, this, dxs = Copies(dxs)] { inner_->RowSumGrad(dy, dxs); });
  }
  void Fm(absl::Span<const Tensor> xs, Tensor s, Tensor y) override {
    Defer([=, this, xs = Copies(xs)] { inner_->Fm(xs, s, y); });
  }
  void FmGrad(absl::Span<const Tensor> xs, Tensor s, Tensor dy,
              absl::Span<const GradientTarget> dxs) override {
    Defer([=, this, xs = Copies(xs), dxs = Copies(dxs)] { inner_->FmGrad(xs, s, dy, dxs); });
  }
  void SequencePool(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y) override {
    Defer([=, this] { inner_->SequencePool(pooling, x, lengths, y); });
  }
  void SequencePoolGrad(SequencePooling pooling, Tensor x, Tensor lengths, Tensor y, Tensor dy,
                        GradientTarget dx) override {
    Defer([=, this] { inner_->SequencePoolGrad(pooling, x, lengths, y, dy, dx); });
  }
  void Dropout(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y,
               bool add) override {
    Defer([=, this] { inner_->Dropout(x, key, first_sample, rate, y, add); });
  }
  void Moments(Tensor x, Tensor sums) override {
    Defer([=, this] { inner_->Moments(x, sums); });
  }
  void BatchNorm(Tensor x, Tensor sums, float epsilon, Tensor gamma, Tensor beta, Tensor stats,
                 Tensor y) override {
    Defer([=, this] { inner_->BatchNorm(x, sums, epsilon, gamma, beta, stats, y); });
  }
  void BatchNormFixed(Tensor x, Tensor mean, Tensor variance, float epsilon, Tensor gamma,
                      Tensor beta, Tensor y) override {
    Defer([=, this] { inner_->BatchNormFixed(x, mean, variance, epsilon, gamma, beta, y); });
  }
  void BatchNormGradSums(Tensor x, Tensor stats, Tensor dy, Tensor grad_sums) override {
    Defer([=, this] { inner_->BatchNormGradSums(x, stats, dy, grad_sums); });
  }
  void BatchNormGrad(Tensor x, Tensor stats, Tensor gamma, Tensor dy, Tensor sums, Tensor grad_sums,
                     GradientTarget dx) override {
    Defer([=, this] { inner_->BatchNormGrad(x, stats, gamma, dy, sums, grad_sums, dx); });
  }
  void BatchNormRunning(Tensor sums, float momentum, Tensor mean, Tensor variance) override {
    Defer([=, this] { inner_->BatchNormRunning(sums, momentum, mean, variance); });
  }
  void BceWithLogits(Tensor logits, Tensor labels, Tensor weights, Tensor mask, Tensor dlogits,
                     Tensor sums) override {
    Defer([=, this] { inner_->BceWithLogits(logits, labels, weights, mask, dlogits, sums); });
  }
  void CountNonFinite(Tensor x, Tensor count) override {
    Defer([=, this] { inner_->CountNonFinite(x, count); });
  }
  void SgdStep(const UpdateCoefficients& step, Tensor gradient, Tensor w) override {
    Defer([=, this] { inner_->SgdStep(step, gradient, w); });
  }
  void AdagradStep(const UpdateCoefficients& step, float epsilon, Tensor gradient, Tensor w,
                   Tensor a) override {
    Defer([=, this] { inner_->AdagradStep(step, epsilon, gradient, w, a); });
  }
  void AdamStep(const UpdateCoefficients& step, const AdamArgs& adam, Tensor gradient, Tensor w,
                Tensor m, Tensor v) override {
    Defer([=, this] { inner_->AdamStep(step, adam, gradient, w, m, v); });
  }

 private:
  void Defer(std::function<void()> operation) {
    Close();  // a view ends with the next operation
    deferred_.push_back(std::move(operation));
  }
  void Close() {
    for (const std::unique_ptr<Pages>& pages : memory_) pages->SetOpen(false);
  }

  const std::unique_ptr<Backend> inner_;
  const HostAccess host_access_;
  std::vector<std::unique_ptr<Pages>> memory_;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace

std::unique_ptr<Backend> NewDeferredBackend(std::unique_ptr<Backend> inner,
                                            HostAccess host_access) {
  return std::make_unique<DeferredBackend>(std::move(inner), host_access);
}

}  // namespace satrap
