// A PartSource gives the parts of one stream at one loader (of one lane of it, where the stream is
// ordered), epoch after epoch. Implemented by ParsedPartSource (batch/parsed_part_source.h).

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

  // Asks for the next part of the epoch, the first being epoch 0. `done` runs once, on any thread,
  // perhaps before Next returns: with a part; with none at the end of the epoch, and then the next
  // ask begins the epoch that follows; or with an error, after which there is nothing more to ask.
  //
  // A part's header names its id in full. The parts of a batch come one after another, from part 0
  // on; batches come in the order of seq. Ordered: every batch has all its parts, of zero samples
  // if need be, last_of_lane is set, and an epoch has at least one batch. A stream whose passes
  // have no end gives at least one part a pass, of zero samples if need be: it waits at its worker
  // for its pass, and the loader with it.
  //
  // REQUIRES: the previous ask was answered
  virtual void Next(Callback done) = 0;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_ENGINE_PART_SOURCE_H_
