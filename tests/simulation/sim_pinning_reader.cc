#include "tests/simulation/sim_pinning_reader.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/cut_pin.h"

namespace satrap::simulation {
namespace {

// No more reads than this are made, because each read costs as much as the check of a cut.
constexpr int kMostReads = 3;
constexpr uint64_t kMostEventsBetween = 2000;

}  // namespace

PinningReader::PinningReader(uint64_t seed, Surroundings surroundings)
    : surroundings_(std::move(surroundings)), random_(seed ^ 0x70696e) {
  next_ = static_cast<int64_t>(random_.Below(kMostEventsBetween));
}

void PinningReader::Act(int64_t events) {
  if (events < next_ || reads_ == kMostReads) return;
  next_ = events + 1 + static_cast<int64_t>(random_.Below(kMostEventsBetween));
  if (pin_ != nullptr) {
    ++reads_;
    const absl::Status read = surroundings_.read(pinned_);
    if (!read.ok()) {
      surroundings_.violated(absl::StrCat("another command has pinned ", pinned_,
                                          " and cannot read it: ", read.ToString()));
    }
    pin_.reset();
    return;
  }
  pinned_ = surroundings_.newest_cut();
  if (pinned_.empty()) return;
  absl::StatusOr<std::unique_ptr<FileLock>> pin = PinCut(pinned_, surroundings_.disk);
  if (pin.ok()) {
    pin_ = *std::move(pin);
  } else {
    // Nobody removes the newest cut, so it can always be pinned.
    surroundings_.violated(absl::StrCat("another command cannot pin ", pinned_,
                                        ", the newest cut: ", pin.status().ToString()));
  }
}

}  // namespace satrap::simulation
