// A PartSource provides the parts of one stream at one loader, epoch after epoch. If the stream is
// ordered, a source has the parts of only one lane. Implementation: ParsedPartSource
// (data_loader/batch/parsed_part_source.h).

#ifndef SATRAP_DATA_LOADER_ENGINE_PART_SOURCE_H_
#define SATRAP_DATA_LOADER_ENGINE_PART_SOURCE_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "data_loader/engine/part.h"

namespace satrap {

class PartSource {
 public:
  virtual ~PartSource() = default;

  using Callback = absl::AnyInvocable<void(absl::StatusOr<absl::optional<Part>>)>;

  // Requests the next part of the current epoch. The first epoch is the one in which the stream
  // begins (0 unless the run continues from a cut). `done` runs once, on any thread, perhaps before
  // Next returns:
  //   - with a part;
  //   - without one at the end of the epoch; the next call then begins the following epoch;
  //   - with an error, after which Next must not be called again.
  //
  // The header of a part has its whole id. The parts of a batch come one after another, from part 0
  // on, and batches come in the order of seq. In an ordered stream every batch has all its parts,
  // if necessary with zero samples, and last_of_lane is set. An epoch has at least one batch,
  // unless its last one was trained before the stream began. A stream of endless passes has at
  // least one part in each pass, if necessary with zero samples: such a part waits at its worker
  // until its pass begins, which keeps the loader from running ahead.
  //
  // REQUIRES: the previous call was answered
  virtual void Next(Callback done) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_PART_SOURCE_H_
