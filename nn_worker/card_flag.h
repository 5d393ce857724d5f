// The flag that an NN worker has in addition to the flags of every role (common/role/role_flags.h):
//
//   nn_worker_cuda --card=1 ...     the card of this machine to train on; default: 0
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_CARD_FLAG_H_
#define SATRAP_NN_WORKER_CARD_FLAG_H_

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/flags/flags.h"
#include "proto/job.pb.h"

namespace satrap {

// Refuses every value if the program has no cards (DeviceProgram, nn_worker/device_program.h).
Flag CardFlag(bool program_has_cards, absl::optional<int>* card);

// The card of a rank: the flag's value, or 0 without the flag. INVALID_ARGUMENT if the flag is
// given and the job trains on no card.
absl::StatusOr<int> CardOfRank(absl::optional<int> flag, const NnWorkerConfig& config);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CARD_FLAG_H_
