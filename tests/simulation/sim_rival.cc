#include "tests/simulation/sim_rival.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace satrap::simulation {
namespace {

// A disk that calls `interrupt` before its `at`-th operation.
class InterruptedDisk final : public FileSystem {
 public:
  InterruptedDisk(std::unique_ptr<FileSystem> disk, int64_t at, std::function<void()> interrupt)
      : disk_(std::move(disk)), operations_left_(at), interrupt_(std::move(interrupt)) {}

  void Disarm() { operations_left_ = 0; }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    return Disk()->Open(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return Disk()->Create(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return Disk()->Rename(from, to);
  }
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    return Disk()->HardLink(from, to);
  }
  absl::Status CreateLink(const std::string& target, const std::string& path) override {
    return Disk()->CreateLink(target, path);
  }
  absl::Status CreateFolders(const std::string& path) override {
    return Disk()->CreateFolders(path);
  }
  absl::Status Remove(const std::string& path) override { return Disk()->Remove(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    return Disk()->List(folder);
  }
  absl::Status SyncFolder(const std::string& folder) override { return Disk()->SyncFolder(folder); }
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path,
                                                    LockKind kind) override {
    return disk_->TryLock(path, kind);
  }
  std::string LockHolders(const std::string& path) override { return disk_->LockHolders(path); }

 private:
  FileSystem* Disk() {
    if (operations_left_ > 0 && --operations_left_ == 0) interrupt_();
    return disk_.get();
  }

  const std::unique_ptr<FileSystem> disk_;
  int64_t operations_left_;  // 0: `interrupt` is not called any more
  const std::function<void()> interrupt_;
};

}  // namespace

Claimer ClaimAgainst(Claimer rival, int64_t at, Claimer first, const ClaimRequest& request,
                     const std::function<void(std::string)>& violated) {
  auto disk = std::make_unique<InterruptedDisk>(std::move(first.disk), at, [&rival, request] {
    ClaimRequest same = request;
    same.writer = ~request.writer;
    rival.claimed = ClaimGeneration(same, rival.disk.get());
  });
  first.claimed = ClaimGeneration(request, disk.get());
  disk->Disarm();
  first.disk = std::move(disk);
  if (!rival.claimed.ok()) return first;
  const absl::Status& lost = first.claimed.status();
  // With these codes its launcher would end the run. Only a disk that fails may be the reason for
  // an error, and it gives other codes.
  if (absl::IsNotFound(lost) || absl::IsUnavailable(lost)) {
    violated(absl::StrCat("a claim beside another one fails: ", lost.ToString()));
  }
  if (!first.claimed.ok()) return rival;
  const bool has_finished = first.claimed->log.end() != nullptr;
  if (!has_finished && first.claimed->generation == rival.claimed->generation) {
    violated(absl::StrCat("two coordinators have claimed generation ", first.claimed->generation));
  }
  return first.claimed->generation < rival.claimed->generation ? std::move(rival)
                                                               : std::move(first);
}

}  // namespace satrap::simulation
