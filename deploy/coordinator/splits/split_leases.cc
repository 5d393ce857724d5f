#include "deploy/coordinator/splits/split_leases.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"

namespace satrap {

absl::StatusOr<absl::optional<uint32_t>> SplitLeases::Lease(uint32_t epoch, uint32_t num_splits) {
  Epoch& dealt = epochs_.try_emplace(epoch, Epoch{num_splits, 0}).first->second;
  if (dealt.num_splits != num_splits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "this loader counts ", Counted(num_splits, "split"), " in epoch ", epoch,
        ", but another one counted ", dealt.num_splits, ": do all loaders see the same files?"));
  }
  absl::optional<uint32_t> split;
  while (dealt.next_split < dealt.num_splits && consumed_.IsSplitDone(epoch, dealt.next_split)) {
    ++dealt.next_split;
  }
  if (dealt.next_split < dealt.num_splits) split = dealt.next_split++;
  return split;
}

}  // namespace satrap
