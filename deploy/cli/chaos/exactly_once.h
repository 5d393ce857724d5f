// Proofs that a finished run has trained every record exactly once in each epoch. They read the
// files of the run's last cut by their format (docs/formats.md, "Saved rows") and share no code
// with the processes that wrote them.
//
// Thread-safe: the functions depend only on their arguments and on the files.

#ifndef SATRAP_DEPLOY_CLI_CHAOS_EXACTLY_ONCE_H_
#define SATRAP_DEPLOY_CLI_CHAOS_EXACTLY_ONCE_H_

#include <string>

#include "absl/status/statusor.h"

namespace satrap {

// The table whose rows count how often each record was trained (TallyConfig, proto/model.proto).
inline constexpr char kTallyTable[] = "tally";

// Checks the ledger of the run's last cut: every epoch must have as many records as the first, and
// their sum must be the number of samples in the result. (A ledger refuses a record that is
// consumed twice.) Returns a line with the result. If the ledger is wrong: DATA_LOSS, with a
// message that describes the fault.
absl::StatusOr<std::string> CheckLedger(const std::string& run_dir);

// Checks the rows of the table kTallyTable in the run's last cut: there must be exactly one row for
// each record of the synthetic log (records are numbered from 0), and its value must be the number
// of epochs. FAILED_PRECONDITION if the job has no such table or reads other data. Otherwise as
// CheckLedger. The message of DATA_LOSS lists the first wrong records with their counts.
absl::StatusOr<std::string> CheckTally(const std::string& run_dir);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_EXACTLY_ONCE_H_
