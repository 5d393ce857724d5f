#include "nn_worker/collective/local_collective.h"

#include <algorithm>
#include <cstring>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/thread/mutex.h"
#include "nn_worker/collective/sum_thread.h"

namespace satrap {
namespace {

// The place where the ranks exchange memory. A meeting has two rounds. After the first round all
// ranks have shown their memory, and each may read the memory of the others. After the second round
// all ranks have finished reading, and each may change its own memory.
class MeetingPoint {
 public:
  explicit MeetingPoint(int size) : size_(size), shown_(size) {}

  int size() const { return size_; }

  // Shows `bytes`, waits for all ranks, runs read(shown), waits until all ranks have read, and runs
  // after(). No rank may leave while another one reads.
  absl::Status Meet(int rank, absl::Span<char> bytes,
                    absl::FunctionRef<void(absl::Span<const absl::Span<char>>)> read,
                    absl::FunctionRef<void()> after) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return status_;
      shown_[rank] = bytes;
    }
    absl::Status met = Round();
    if (!met.ok()) return met;
    read(shown_);
    met = Round();
    if (!met.ok()) return met;
    after();
    return absl::OkStatus();
  }

  void Abort(absl::Status status) {
    CHECK(!status.ok());
    MutexLock lock(&mutex_);
    if (status_.ok()) status_ = std::move(status);
    turn_.NotifyAll();
  }

  absl::Status status() {
    MutexLock lock(&mutex_);
    return status_;
  }

 private:
  absl::Status Round() {
    MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    const int64_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      turn_.NotifyAll();
      return absl::OkStatus();
    }
    while (round_ == round && status_.ok()) turn_.Wait(&mutex_);
    // A completed round counts, even if Abort came before this rank woke up: the other ranks have
    // continued, and will find the status in the next round.
    return round_ != round ? absl::OkStatus() : status_;
  }

  const int size_;
  Mutex mutex_;
  CondVar turn_;
  int arrived_ GUARDED_BY(mutex_) = 0;
  int64_t round_ GUARDED_BY(mutex_) = 0;
  absl::Status status_ GUARDED_BY(mutex_);
  // Written by each rank before the first round, read by all between the rounds.
  std::vector<absl::Span<char>> shown_;
};

class LocalCollective final : public Collective {
 public:
  LocalCollective(std::shared_ptr<MeetingPoint> point, int rank)
      : point_(std::move(point)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return point_->size(); }

  absl::Status AllReduceSum(absl::Span<float> values) override { return Sum(values, &floats_); }
  absl::Status AllReduceSum(absl::Span<double> values) override { return Sum(values, &doubles_); }

  std::unique_ptr<PendingSum> StartAllReduceSum(absl::Span<float> values) override {
    if (size() == 1) return EndedSum(point_->status());
    return sums_.Start(values);
  }

  absl::Status Broadcast(int root, absl::Span<char> bytes) override {
    CHECK(root >= 0 && root < size());
    if (size() == 1) return point_->status();
    return point_->Meet(
        rank_, bytes,
        [&](absl::Span<const absl::Span<char>> shown) {
          CHECK(shown[root].size() == bytes.size());
          if (rank_ != root && !bytes.empty()) {
            std::memcpy(bytes.data(), shown[root].data(), bytes.size());
          }
        },
        [] {});
  }

  absl::StatusOr<std::vector<std::string>> AllGatherBytes(absl::string_view bytes) override {
    std::string own(bytes);
    std::vector<std::string> gathered;
    const absl::Status status = point_->Meet(
        rank_, absl::MakeSpan(own),
        [&](absl::Span<const absl::Span<char>> shown) {
          for (absl::Span<char> part : shown) gathered.emplace_back(part.data(), part.size());
        },
        [] {});
    if (!status.ok()) return status;
    return gathered;
  }

  // Each rank shows the array of its strings, and every other rank copies its string from it.
  absl::StatusOr<std::vector<std::string>> AllToAllBytes(
      absl::Span<const std::string> bytes) override {
    CHECK(bytes.size() == static_cast<size_t>(size()));
    std::vector<const std::string*> given;
    for (const std::string& element : bytes) given.push_back(&element);
    std::vector<std::string> received;
    const absl::Status status = point_->Meet(
        rank_,
        absl::Span<char>(reinterpret_cast<char*>(given.data()), given.size() * sizeof(void*)),
        [&](absl::Span<const absl::Span<char>> shown) {
          for (absl::Span<char> strings : shown) {
            received.push_back(*reinterpret_cast<const std::string* const*>(strings.data())[rank_]);
          }
        },
        [] {});
    if (!status.ok()) return status;
    return received;
  }

  absl::Status Barrier() override {
    return point_->Meet(
        rank_, {}, [](absl::Span<const absl::Span<char>>) {}, [] {});
  }

  void Abort(absl::Status status) override { point_->Abort(std::move(status)); }
  absl::Status status() override { return point_->status(); }

 private:
  // Each rank sums all ranks' values, in rank order, into separate memory. When all ranks have
  // finished reading, it replaces its values by the sums.
  template <typename T>
  absl::Status Sum(absl::Span<T> values, std::vector<T>* sums) {
    if (size() == 1) return point_->status();
    const absl::Span<char> bytes(reinterpret_cast<char*>(values.data()), values.size() * sizeof(T));
    return point_->Meet(
        rank_, bytes,
        [&](absl::Span<const absl::Span<char>> shown) {
          sums->assign(values.size(), T{0});
          for (absl::Span<char> part : shown) {
            CHECK(part.size() == bytes.size()) << "ranks reduce different counts";
            const T* other = reinterpret_cast<const T*>(part.data());
            for (size_t i = 0; i < values.size(); ++i) (*sums)[i] += other[i];
          }
        },
        [&] { std::copy(sums->begin(), sums->end(), values.begin()); });
  }

  const std::shared_ptr<MeetingPoint> point_;
  const int rank_;
  std::vector<float> floats_;
  std::vector<double> doubles_;
  SumThread sums_{[this](absl::Span<float> values) { return Sum(values, &floats_); }};
};

}  // namespace

std::vector<std::unique_ptr<Collective>> NewLocalCollectives(int size) {
  CHECK(size >= 1);
  auto point = std::make_shared<MeetingPoint>(size);
  std::vector<std::unique_ptr<Collective>> collectives;
  for (int rank = 0; rank < size; ++rank) {
    collectives.push_back(std::make_unique<LocalCollective>(point, rank));
  }
  return collectives;
}

}  // namespace satrap
