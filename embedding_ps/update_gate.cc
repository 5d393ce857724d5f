#include "embedding_ps/update_gate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap {

UpdateGate::Admission UpdateGate::Admit(Task* update) {
  ++open_;
  touched_ = true;
  if (loading_ || load_failed_) return Admission::kRefused;
  if (awaited_cut_ == 0) return Admission::kRun;
  waiting_.push_back(std::move(*update));
  return Admission::kWaits;
}

void UpdateGate::Finish() {
  CHECK(open_ > 0);
  --open_;
}

absl::Status UpdateGate::BeginCut(uint64_t cut, bool hold_updates) {
  if (open_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cut ", cut, " refused: ", open_, " Updates are not answered yet"));
  }
  if (loading_ || load_failed_ || restored_) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cut ", cut, " refused: the tables hold the rows of another cut, or are being loaded"));
  }
  touched_ = true;
  if (hold_updates) awaited_cut_ = cut;
  return absl::OkStatus();
}

std::vector<Task> UpdateGate::Release(uint64_t cut) {
  if (awaited_cut_ != cut) return {};
  awaited_cut_ = 0;
  return std::exchange(waiting_, {});
}

absl::StatusOr<bool> UpdateGate::BeginLoad() {
  if (open_ > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("LoadTables refused: ", open_, " Updates are not answered yet"));
  }
  if (loading_) {
    return absl::FailedPreconditionError("LoadTables refused: another load is running");
  }
  loading_ = true;
  return !touched_;
}

void UpdateGate::EndLoad(const LoadEnd& end) {
  loading_ = false;
  // A load that failed before it removed any rows changes nothing.
  if (!end.replaced) return;
  // If the model that the run starts from vanishes while the PSs load it, rank 0 makes all of them
  // load another model, even those whose load had ended. So a load of that model leaves the tables
  // untouched.
  if (!end.of_start_model) touched_ = true;
  // After an error, no Update may be applied to the tables until another load fills them.
  load_failed_ = end.failed;
  if (!end.was_untouched) restored_ = true;
}

}  // namespace satrap
