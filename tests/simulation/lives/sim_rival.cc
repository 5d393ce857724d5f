#include "tests/simulation/lives/sim_rival.h"

#include "absl/strings/str_cat.h"
#include "common/file/testing/forwarding_file_system.h"

namespace satrap::simulation {
namespace {

// A disk that calls `interrupt` before its `at`-th operation.
class InterruptedDisk final : public ForwardingFileSystem {
 public:
  InterruptedDisk(std::unique_ptr<FileSystem> disk, int64_t at, std::function<void()> interrupt)
      : ForwardingFileSystem(std::move(disk)),
        operations_left_(at),
        interrupt_(std::move(interrupt)) {}

  void Disarm() { operations_left_ = 0; }

 private:
  FileSystem* Next() override {
    if (operations_left_ > 0 && --operations_left_ == 0) interrupt_();
    return disk();
  }

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
  // An error with one of these codes would make the launcher of `first` end the run. Only the disk
  // may cause errors, and these have other codes.
  if (absl::IsNotFound(lost) || absl::IsUnavailable(lost)) {
    violated(absl::StrCat("a claim beside another one fails: ", lost.ToString()));
  }
  if (!first.claimed.ok()) return rival;
  // In pods a coordinator that finds no restart left ends the run.
  if (rival.claimed->log.end() != nullptr) return rival;
  const bool has_ended = first.claimed->log.end() != nullptr;
  if (!has_ended && first.claimed->generation == rival.claimed->generation) {
    violated(absl::StrCat("two coordinators have claimed generation ", first.claimed->generation));
  }
  return first.claimed->generation < rival.claimed->generation ? std::move(rival)
                                                               : std::move(first);
}

Claimer ClaimMaybeAgainst(const std::function<Claimer()>& make, int64_t at,
                          const ClaimRequest& request,
                          const std::function<void(std::string)>& violated) {
  Claimer claimer = make();
  if (at > 0) return ClaimAgainst(make(), at, std::move(claimer), request, violated);
  claimer.claimed = ClaimGeneration(request, claimer.disk.get());
  return claimer;
}

}  // namespace satrap::simulation
