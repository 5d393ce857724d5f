#include "nn_worker/collective/gloo_collective.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/thread/mutex.h"
#include "nn_worker/collective/own_address.h"
#include "nn_worker/collective/sum_thread.h"

namespace satrap {
namespace {

using UnboundBuffer = gloo::transport::UnboundBuffer;

// Gloo cannot wait without a deadline. This deadline is long enough, and does not overflow when it
// is added to a clock.
constexpr std::chrono::milliseconds kForever = std::chrono::hours(24 * 365);

// Adapts our store to Gloo's interface. Gloo reports errors by exceptions only, so this class
// throws Gloo's exceptions; NewGlooCollective catches them around the call that uses the store.
class StoreAdapter final : public gloo::rendezvous::Store {
 public:
  StoreAdapter(RendezvousStore* store, const GlooOptions& options)
      : store_(store), prefix_(options.prefix), timeout_ms_(options.connect_timeout_ms) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const absl::Status status =
        store_->Set(absl::StrCat(prefix_, "/", key), std::string(data.begin(), data.end()));
    if (!status.ok()) throw gloo::IoException(status.ToString());
  }
  std::vector<char> get(const std::string& key) override {
    const absl::StatusOr<std::string> value =
        store_->Get(absl::StrCat(prefix_, "/", key), timeout_ms_);
    if (!value.ok()) throw gloo::IoException(value.status().ToString());
    return std::vector<char>(value->begin(), value->end());
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  RendezvousStore* const store_;
  const std::string prefix_;
  const int64_t timeout_ms_;
};

// Where a message lies in a buffer.
struct Extent {
  size_t begin = 0;
  size_t bytes = 0;
  size_t end() const { return begin + bytes; }
};

// Adjacent extents of these sizes.
std::vector<Extent> Consecutive(absl::Span<const uint64_t> sizes) {
  std::vector<Extent> extents;
  size_t begin = 0;
  for (const uint64_t size : sizes) {
    extents.push_back({begin, size});
    begin += size;
  }
  return extents;
}

class GlooCollective final : public Collective {
 public:
  explicit GlooCollective(std::shared_ptr<gloo::rendezvous::Context> context)
      : context_(std::move(context)) {}

  ~GlooCollective() override { context_->closeConnections(); }

  int rank() const override { return context_->rank; }
  int size() const override { return context_->size; }

  absl::Status AllReduceSum(absl::Span<float> values) override { return Sum(values); }
  absl::Status AllReduceSum(absl::Span<double> values) override { return Sum(values); }

  std::unique_ptr<PendingSum> StartAllReduceSum(absl::Span<float> values) override {
    if (size() == 1) return EndedSum(status());
    return sums_.Start(values);
  }

  absl::Status Broadcast(int root, absl::Span<char> bytes) override {
    CHECK(root >= 0 && root < size());
    return Run([&] {
      const Extent all = {0, bytes.size()};
      return Exchange(
          bytes, [&](int) { return rank() == root ? all : Extent(); }, bytes,
          [&](int from) { return from == root ? all : Extent(); });
    });
  }

  absl::StatusOr<std::vector<std::string>> AllGatherBytes(absl::string_view bytes) override {
    std::vector<std::string> gathered(size());
    RETURN_IF_ERROR(Run([&]() -> absl::Status {
      std::vector<uint64_t> sizes(size(), 0);
      sizes[rank()] = bytes.size();
      RETURN_IF_ERROR(GatherPieces(absl::MakeSpan(sizes)));
      std::vector<uint64_t> begins(size() + 1, 0);
      for (int r = 0; r < size(); ++r) begins[r + 1] = begins[r] + sizes[r];
      std::string all(begins[size()], '\0');
      std::copy(bytes.begin(), bytes.end(), all.begin() + begins[rank()]);
      const auto piece = [&](int r) { return Extent{begins[r], sizes[r]}; };
      RETURN_IF_ERROR(Exchange(
          absl::MakeSpan(all), [&](int) { return piece(rank()); }, absl::MakeSpan(all), piece));
      for (int r = 0; r < size(); ++r) gathered[r] = all.substr(begins[r], sizes[r]);
      return absl::OkStatus();
    }));
    return gathered;
  }

  absl::StatusOr<std::vector<std::string>> AllToAllBytes(
      absl::Span<const std::string> bytes) override {
    CHECK(bytes.size() == static_cast<size_t>(size()));
    std::vector<std::string> received(size());
    RETURN_IF_ERROR(Run([&]() -> absl::Status {
      std::vector<uint64_t> given_sizes, sizes(size());
      for (const std::string& element : bytes) given_sizes.push_back(element.size());
      const auto size_of = [](int r) { return Extent{r * sizeof(uint64_t), sizeof(uint64_t)}; };
      RETURN_IF_ERROR(Exchange(Bytes(absl::MakeSpan(given_sizes)), size_of,
                               Bytes(absl::MakeSpan(sizes)), size_of));
      sizes[rank()] = given_sizes[rank()];
      // Gloo sends from one buffer and receives into one buffer, so all elements are joined.
      std::string given, all;
      const std::vector<Extent> given_extents = Consecutive(given_sizes);
      const std::vector<Extent> extents = Consecutive(sizes);
      given.reserve(given_extents.back().end());
      for (const std::string& element : bytes) given += element;
      all.resize(extents.back().end());
      RETURN_IF_ERROR(Exchange(
          absl::MakeSpan(given), [&](int to) { return given_extents[to]; }, absl::MakeSpan(all),
          [&](int from) { return extents[from]; }));
      for (int r = 0; r < size(); ++r) {
        received[r] = r == rank() ? bytes[r] : all.substr(extents[r].begin, extents[r].bytes);
      }
      return absl::OkStatus();
    }));
    return received;
  }

  absl::Status Barrier() override {
    return Run([&] {
      std::vector<char> here(size(), 1);
      return GatherPieces(absl::MakeSpan(here));
    });
  }

  void Abort(absl::Status status) override {
    CHECK(!status.ok());
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = std::move(status);
    for (UnboundBuffer* buffer : waiting_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
    if (!running_) context_->closeConnections();
  }
  absl::Status status() override {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  // Runs one call. Any error, whether `call` returns it or Gloo throws it, ends the object; then
  // its connections close, which ends the calls of the other ranks.
  absl::Status Run(absl::FunctionRef<absl::Status()> call) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return status_;
      running_ = true;
    }
    absl::Status result;
    try {
      result = call();
    } catch (const std::exception& error) {
      result = absl::UnavailableError(absl::StrCat("collective: ", error.what()));
    }
    MutexLock lock(&mutex_);
    running_ = false;
    if (!result.ok() && status_.ok()) status_ = std::move(result);
    if (!status_.ok()) context_->closeConnections();
    return status_;
  }

  // One phase: sends each other rank its extent of `out` and receives from each into `in`, which
  // may be the same memory. Every rank runs the same phases in the same order, so the number of a
  // phase identifies the messages of that phase.
  absl::Status Exchange(absl::Span<char> out, absl::FunctionRef<Extent(int to)> sent,
                        absl::Span<char> in, absl::FunctionRef<Extent(int from)> received) {
    const uint64_t phase = phase_++;
    const auto sends = context_->createUnboundBuffer(out.data(), out.size());
    const auto receives = context_->createUnboundBuffer(in.data(), in.size());
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return status_;
      // The buffers are registered under the lock that Abort takes. From here on Abort can end the
      // waits below.
      waiting_ = {sends.get(), receives.get()};
    }
    // Abort must not touch the buffers once this function has returned or thrown.
    struct Forget {
      explicit Forget(GlooCollective* owner) : owner(owner) {}
      ~Forget() {
        MutexLock lock(&owner->mutex_);
        owner->waiting_.clear();
      }
      GlooCollective* const owner;
    } forget(this);

    // Start all receives before the first send, so that no peer's message waits for a buffer.
    int to_send = 0;
    int to_receive = 0;
    for (int other = 0; other < size(); ++other) {
      const Extent extent = received(other);
      if (other == rank() || extent.bytes == 0) continue;
      receives->recv(other, phase, extent.begin, extent.bytes);
      ++to_receive;
    }
    for (int other = 0; other < size(); ++other) {
      const Extent extent = sent(other);
      if (other == rank() || extent.bytes == 0) continue;
      sends->send(other, phase, extent.begin, extent.bytes);
      ++to_send;
    }
    for (; to_receive > 0; --to_receive) {
      if (!receives->waitRecv(kForever)) return Aborted();
    }
    for (; to_send > 0; --to_send) {
      if (!sends->waitSend(kForever)) return Aborted();
    }
    return absl::OkStatus();
  }

  absl::Status Aborted() {
    MutexLock lock(&mutex_);
    return status_;
  }

  template <typename T>
  static absl::Span<char> Bytes(absl::Span<T> values) {
    return absl::Span<char>(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
  }
  // The place of piece r of `count` values, in bytes. The pieces of all ranks together cover the
  // values.
  template <typename T>
  Extent Piece(size_t count, int r) const {
    const size_t begin = count * r / size();
    const size_t end = count * (r + 1) / size();
    return {begin * sizeof(T), (end - begin) * sizeof(T)};
  }

  // Before the call each rank has its own piece of `values`; afterwards each has all pieces.
  template <typename T>
  absl::Status GatherPieces(absl::Span<T> values) {
    return Exchange(
        Bytes(values), [&](int) { return Piece<T>(values.size(), rank()); }, Bytes(values),
        [&](int from) { return Piece<T>(values.size(), from); });
  }

  template <typename T>
  absl::Status Sum(absl::Span<T> values) {
    return Run([&]() -> absl::Status {
      if (size() == 1) return absl::OkStatus();
      const Extent own = Piece<T>(values.size(), rank());
      const size_t count = own.bytes / sizeof(T);
      T* sums = values.data() + own.begin / sizeof(T);
      scratch_.resize(std::max(scratch_.size(), own.bytes * size()));
      RETURN_IF_ERROR(Exchange(
          Bytes(values), [&](int to) { return Piece<T>(values.size(), to); },
          absl::MakeSpan(scratch_),
          [&](int from) {
            return Extent{from * own.bytes, own.bytes};
          }));
      // If there are fewer values than ranks, some piece is empty, but memcpy does not accept a
      // null pointer.
      if (count > 0) std::memcpy(scratch_.data() + rank() * own.bytes, sums, own.bytes);
      std::fill_n(sums, count, T{0});
      for (int r = 0; r < size(); ++r) {
        const T* piece = reinterpret_cast<const T*>(scratch_.data() + r * own.bytes);
        for (size_t i = 0; i < count; ++i) sums[i] += piece[i];
      }
      return GatherPieces(values);
    });
  }

  const std::shared_ptr<gloo::rendezvous::Context> context_;
  uint64_t phase_ = 0;
  std::vector<char> scratch_;  // the ranks' pieces of a sum, one after another

  Mutex mutex_;
  absl::Status status_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  std::vector<UnboundBuffer*> waiting_ GUARDED_BY(mutex_);

  SumThread sums_{[this](absl::Span<float> values) { return Sum(values); }};
};

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> NewGlooCollective(const GlooOptions& options,
                                                              RendezvousStore* store) {
  CHECK(options.rank >= 0 && options.rank < options.size);
  const absl::StatusOr<std::string> address = OwnAddressOf(options.host);
  if (!address.ok()) {
    return absl::Status(address.status().code(),
                        absl::StrCat("collective: rank ", options.rank,
                                     " cannot connect: ", address.status().message()));
  }
  try {
    gloo::transport::tcp::attr attr;
    attr.hostname = *address;
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attr);
    auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
    context->setTimeout(std::chrono::milliseconds(options.connect_timeout_ms));
    StoreAdapter adapter(store, options);
    context->connectFullMesh(adapter, device);
    context->setTimeout(kForever);
    return std::make_unique<GlooCollective>(std::move(context));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("collective: rank ", options.rank,
                                               " cannot connect from ", options.host, ": ",
                                               error.what()));
  }
}

}  // namespace satrap
