// The error of a generation that cannot load the cut from which it begins.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CHECKPOINT_START_CUT_H_
#define SATRAP_COMMON_CHECKPOINT_START_CUT_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace satrap {

// The type of the payload by which a status is marked as the error of a start cut.
inline constexpr char kStartCutMark[] = "satrap/about_start_cut";

// The advice at the end of the message of a start cut's error. The run does not go back to an older
// cut by itself, because that would lose work without anyone noticing.
inline constexpr char kChooseAnotherCut[] =
    "continue from another cut with `satrap resume RUN --from CUT`";

// If files of the cut are damaged or missing, returns `status` with a mark and with
// kChooseAnotherCut after its message; otherwise `status` itself.
inline absl::Status MarkAsStartCutError(const absl::Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  absl::Status marked =
      absl::DataLossError(absl::StrCat(status.message(), "; ", kChooseAnotherCut));
  marked.SetPayload(kStartCutMark, absl::Cord());
  return marked;
}

// Whether MarkAsStartCutError has marked `status`, whatever its message says. A status that is
// rebuilt from its code and message loses the mark.
inline bool IsStartCutError(const absl::Status& status) {
  return status.GetPayload(kStartCutMark).has_value();
}

}  // namespace satrap

#endif  // SATRAP_COMMON_CHECKPOINT_START_CUT_H_
