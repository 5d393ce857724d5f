#include "nn_worker/backend/deferred_backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace satrap {
namespace {

// Access is set by page, so every allocation begins on one.
constexpr int64_t kPageBytes = 4096;

// Zeroed pages, mapped twice: at the address that the caller gets, closed to every access unless the
// host has a view; and at another one, where the inner backend computes.
class Pages {
 public:
  explicit Pages(int64_t bytes)
      : bytes_(bytes), mapped_((bytes + kPageBytes - 1) / kPageBytes * kPageBytes) {
    const int file = memfd_create("deferred_backend", MFD_CLOEXEC);
    CHECK(file >= 0 && ftruncate(file, mapped_) == 0);
    outer_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_NONE, MAP_SHARED, file, 0));
    inner_ =
        static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    CHECK(outer_ != MAP_FAILED && inner_ != MAP_FAILED);
    close(file);
  }
  ~Pages() {
    munmap(outer_, mapped_);
    munmap(inner_, mapped_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  char* outer() const { return outer_; }
  // Where the inner backend finds `p`.
  char* Inner(const void* p) const { return inner_ + (static_cast<const char*>(p) - outer_); }
  // Whether [p, p + bytes) lies within what was asked for, where the caller sees it.
  bool Hold(const void* p, int64_t bytes) const {
    const char* begin = static_cast<const char*>(p);
    return begin >= outer_ && begin < outer_ + bytes_ && bytes <= outer_ + bytes_ - begin;
  }
  void SetOpen(bool open) {
    if (open == open_) return;
    CHECK(mprotect(outer_, mapped_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
    open_ = open;
  }

 private:
  const int64_t bytes_;
  const int64_t mapped_;
  char* outer_;
  char* inner_;
  bool open_ = false;
};

using Tensors = std::vector<Tensor>;
using Targets = std::vector<GradientTarget>;

// Runs nothing before a Sync, the latest that the contract allows, and lets the host reach memory
// only while a view is open. Code that reads a result too early gets a segmentation fault at that
// line, on a CPU, and not wrong numbers on a GPU.
class DeferredBackend final : public Backend {
 public:
  DeferredBackend(std::unique_ptr<Backend> inner, HostAccess host_access)
      : inner_(std::move(inner)), host_access_(host_access) {}

  absl::StatusOr<void*> Allocate(int64_t bytes) override {
    // mmap refuses 0 bytes, which are legal here.
    auto pages = std::make_unique<Pages>(std::max<int64_t>(1, bytes));
    void* const outer = pages->outer();
    memory_[pages->outer()] = std::move(pages);
    return outer;
  }
  // The values go along: the caller may reuse its array at once.
  void CopyIn(absl::Span<const uint8_t> host, Tensor device) override {
    Defer([this, device = Inner(device), values = std::vector<uint8_t>(host.begin(), host.end())] {
      inner_->CopyIn(values, device);
    });
  }
  // The span stays the caller's: it is filled by the next Sync, and must live until then.
  void CopyOut(Tensor device, absl::Span<uint8_t> host) override {
    Defer([this, device = Inner(device), host] { inner_->CopyOut(device, host); });
  }
  void* HostView(void* device) override {
    if (host_access_ == HostAccess::kNone) return nullptr;
    CHECK(deferred_.empty()) << "HostView without a Sync before it";
    // Only the one that was asked for: a neighbour that is reached by a wrong index stays closed.
    Pages* const pages = PagesOf(device, 0);
    pages->SetOpen(true);
    views_.push_back(pages);
    return device;
  }
  // Null for both kinds of access: a device that shows its memory need not see the host's.
  void* DeviceView(void*) override { return nullptr; }
  void Sync() override {
    for (const std::function<void()>& operation : deferred_) operation();
    // An inner backend may defer, too.
    inner_->Sync();
    deferred_.clear();
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
  void Dropout(Tensor x, uint64_t key, int64_t first_sample, float rate, Tensor y,
               bool add) override {
    Defer([this, x = Inner(x), key, first_sample, rate, y = Inner(y), add] {
      inner_->Dropout(x, key, first_sample, rate, y, add);
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
  void BatchNormRunning(Tensor sums, float momentum, Tensor mean, Tensor variance) override {
    Defer([this, sums = Inner(sums), momentum, mean = Inner(mean), variance = Inner(variance)] {
      inner_->BatchNormRunning(sums, momentum, mean, variance);
    });
  }
  void BceWithLogits(Tensor logits, Tensor labels, Tensor weights, Tensor mask, Tensor dlogits,
                     Tensor sums) override {
    Defer([this, logits = Inner(logits), labels = Inner(labels), weights = Inner(weights),
           mask = Inner(mask), dlogits = Inner(dlogits), sums = Inner(sums)] {
      inner_->BceWithLogits(logits, labels, weights, mask, dlogits, sums);
    });
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
  void CountNonFinite(Tensor x, Tensor count) override {
    Defer([this, x = Inner(x), count = Inner(count)] { inner_->CountNonFinite(x, count); });
  }
  void SgdStep(const UpdateCoefficients& step, Tensor gradient, Tensor w) override {
    Defer([this, step, gradient = Inner(gradient), w = Inner(w)] {
      inner_->SgdStep(step, gradient, w);
    });
  }
  void AdagradStep(const UpdateCoefficients& step, float epsilon, Tensor gradient, Tensor w,
                   Tensor a) override {
    Defer([this, step, epsilon, gradient = Inner(gradient), w = Inner(w), a = Inner(a)] {
      inner_->AdagradStep(step, epsilon, gradient, w, a);
    });
  }
  void AdamStep(const UpdateCoefficients& step, const AdamArgs& adam, Tensor gradient, Tensor w,
                Tensor m, Tensor v) override {
    Defer([this, step, adam, gradient = Inner(gradient), w = Inner(w), m = Inner(m), v = Inner(v)] {
      inner_->AdamStep(step, adam, gradient, w, m, v);
    });
  }

 private:
  void Defer(std::function<void()> operation) {
    for (Pages* pages : views_) pages->SetOpen(false);  // a view ends with the next operation
    views_.clear();
    deferred_.push_back(std::move(operation));
  }

  // The allocation that holds [p, p + bytes).
  Pages* PagesOf(const void* p, int64_t bytes) const {
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
    tensor.data = PagesOf(tensor.data, values * DTypeBytes(tensor.dtype))->Inner(tensor.data);
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
  LinearGradArgs Inner(LinearGradArgs args) const {
    for (Tensor* tensor :
         {&args.x, &args.w, &args.y, &args.dy, &args.dx.tensor, &args.dw, &args.db}) {
      *tensor = Inner(*tensor);
    }
    return args;
  }

  const std::unique_ptr<Backend> inner_;
  const HostAccess host_access_;
  std::map<char*, std::unique_ptr<Pages>> memory_;  // by the address that the caller sees
  std::vector<Pages*> views_;
  std::vector<std::function<void()>> deferred_;
};

}  // namespace

std::unique_ptr<Backend> NewDeferredBackend(std::unique_ptr<Backend> inner,
                                            HostAccess host_access) {
  return std::make_unique<DeferredBackend>(std::move(inner), host_access);
}

}  // namespace satrap
