// The error of a generation that cannot load the cut it begins from.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_START_CUT_H_
#define SATRAP_COMMON_CHECKPOINT_START_CUT_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace satrap {

// What to do about it. No older cut is taken silently: work would be lost without a word.
inline constexpr char kChooseAnotherCut[] =
    "go on from another cut with `satrap resume RUN --from CUT`";

// `status` with kChooseAnotherCut behind its message if files of the cut are damaged or missing.
inline absl::Status AboutStartCut(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  return absl::DataLossError(absl::StrCat(status.message(), "; ", kChooseAnotherCut));
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_START_CUT_H_
