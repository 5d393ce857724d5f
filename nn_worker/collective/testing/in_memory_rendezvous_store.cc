#include "nn_worker/collective/testing/in_memory_rendezvous_store.h"

#include <chrono>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/thread/mutex.h"

namespace satrap {
namespace {

class InMemoryRendezvousStore final : public RendezvousStore {
 public:
  absl::Status Set(const std::string& key, const std::string& value) override {
    MutexLock lock(&mutex_);
    values_[key] = value;
    changed_.NotifyAll();
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Get(const std::string& key, int64_t timeout_ms) override {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    MutexLock lock(&mutex_);
    for (;;) {
      if (const auto found = values_.find(key); found != values_.end()) return found->second;
      const int64_t left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  end - std::chrono::steady_clock::now())
                                  .count();
      if (left_ms <= 0) {
        return absl::DeadlineExceededError(absl::StrCat("nobody has set \"", key, "\""));
      }
      changed_.WaitFor(&mutex_, left_ms);
    }
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  absl::flat_hash_map<std::string, std::string> values_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<RendezvousStore> NewInMemoryRendezvousStore() {
  return std::make_unique<InMemoryRendezvousStore>();
}

}  // namespace satrap
