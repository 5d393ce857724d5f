#include "common/kafka/offset_errors.h"

#include "absl/strings/str_cat.h"

namespace satrap {

absl::Status CheckOffset(const KafkaPartition& partition, int64_t offset, int64_t wanted) {
  if (offset >= wanted) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("offset ", offset, " of ", partition.ToString(),
                                          " arrived, but ", wanted,
                                          " or a later one was due: the client repeats messages"));
}

absl::Status OffsetRefused(const KafkaPartition& partition, int64_t wanted,
                           const KafkaOffsetRange& found,
                           absl::optional<MessageSource::Lost>* lost) {
  if (wanted > found.latest) {
    *lost = MessageSource::Lost{wanted, found.latest};
    return absl::OutOfRangeError(absl::StrCat(
        "offset ", wanted, " of ", partition.ToString(),
        " was to be read next, but the partition ends at ", found.latest,
        ": its log was lost or the topic was made anew. Its offsets no longer refer to the "
        "messages that were trained, so this run cannot continue with it: begin a new run"));
  }
  if (wanted < found.earliest) {
    *lost = MessageSource::Lost{wanted, found.earliest};
    return absl::OutOfRangeError(absl::StrCat(
        "offset ", wanted, " of ", partition.ToString(),
        " was to be read next, but the first one that the broker still has is ", found.earliest,
        ": retention removed messages before they were read; set on_lost_offsets: "
        "SKIP to continue there"));
  }
  return absl::UnavailableError(
      absl::StrCat("a broker refused offset ", wanted, " of ", partition.ToString(),
                   ", and then said that it has the offsets from ", found.earliest, " to ",
                   found.latest, ": the leader of the partition has changed meanwhile"));
}

}  // namespace satrap
