// The work that a run loses if it continues from its newest cut: what was trained after it.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_COORDINATOR_ENDING_LOST_WORK_H_
#define SATRAP_DEPLOY_COORDINATOR_ENDING_LOST_WORK_H_

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"

namespace satrap {

// Whether it is certain that nothing was trained between the cut that the newest generation of
// `log` begins from and the beginning of that generation. It is certain in three cases: the
// generation is the first of the run; training was over with that cut; or the ranks stopped at that
// cut, for a stop or a change of size. A changed job that was dropped in between has trained
// nothing. After any other cut training continued, and it is not known how far.
bool NothingWasLostBefore(const RunLog& log);

// What a generation's coordinator knows about the training in its generation.
struct TrainedSince {
  absl::optional<CutEntry> own_cut;  // the newest cut that this generation committed
  std::string start_cut;             // name of the cut it began from; empty: the beginning
  uint64_t start_step = 0;           // the step at which it began
  uint64_t step = 0;                 // the last step that rank 0 reported, perhaps a second ago
};
// Appends to the text of `how` how much work is lost and where the run continues. Sets `loss` if
// steps are known to be lost.
void AddLostWork(const TrainedSince& trained, Ending* how);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_ENDING_LOST_WORK_H_
