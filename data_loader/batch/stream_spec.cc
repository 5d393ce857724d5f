#include "data_loader/batch/stream_spec.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace satrap {
namespace {

uint64_t BlockRowsOf(const DataConfig& data, bool shuffled) {
  return shuffled ? static_cast<uint64_t>(data.shuffle_rows()) : kUnshuffledBlockRows;
}

// The streams of a seeded split all read the train files. If the job trains, the train stream
// counts the bad records of these files, so the other streams must not count them again.
bool ReportsBad(const JobConfig& job, Stream stream) {
  return !IsSeededStream(job.data(), stream) || job.action() != JobConfig::TRAIN;
}

// The ranges with the samples [from, to) of `batch`.
std::vector<BlockRange> Slice(absl::Span<const BlockRange> batch, uint64_t from, uint64_t to) {
  std::vector<BlockRange> slice;
  uint64_t at = 0;  // the position in the batch of the range's first sample
  for (const BlockRange& range : batch) {
    const uint64_t begin = std::max(from, at);
    const uint64_t end = std::min(to, at + range.size());
    if (begin < end) {
      slice.push_back(PieceOf(range, range.from + static_cast<uint32_t>(begin - at),
                              range.from + static_cast<uint32_t>(end - at)));
    }
    at += range.size();
  }
  return slice;
}

Part MakePart(const StreamSpec& spec, absl::Span<const BlockRange> ranges, uint64_t first_sample,
              uint32_t epoch, uint64_t index) {
  Part part = spec.encoder.Encode(ranges, first_sample);
  part.header.set_stream(spec.stream);
  part.header.set_epoch(epoch);
  PartId* id = part.header.mutable_part()->mutable_id();
  id->set_stream(spec.stream);
  id->set_epoch(epoch);
  id->set_part(static_cast<uint32_t>(index));
  return part;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const StreamSpec>> StreamSpec::Make(const JobConfig& job,
                                                                   Stream stream,
                                                                   ReadProgress* progress,
                                                                   StreamBegin begin) {
  ASSIGN_OR_RETURN(std::vector<Split> splits, ListSplits(job, stream));
  return std::make_shared<const StreamSpec>(job, stream, std::move(splits), progress,
                                            std::move(begin));
}

StreamSpec::StreamSpec(const JobConfig& job_config, Stream of_stream, std::vector<Split> all_splits,
                       ReadProgress* read_progress, StreamBegin begins_at)
    : job(job_config),
      stream(of_stream),
      splits(std::move(all_splits)),
      schema(SchemaOf(job.data())),
      encoder(job.data()),
      filter(job, stream),
      ordered(stream == TRAIN_STREAM && job.mode() == JobConfig::SYNC),
      shuffled(stream == TRAIN_STREAM && job.data().shuffle_rows() > 0),
      block_rows(BlockRowsOf(job.data(), shuffled)),
      reports_bad(ReportsBad(job, stream)),
      begin(std::move(begins_at)),
      click_log(job.data().has_synthetic()
                    ? std::make_unique<const ClickLog>(job.data().synthetic())
                    : nullptr),
      check(job),
      watch(std::make_unique<ValueWatch>(job, stream)),
      progress(read_progress) {}

void StreamSpec::AddReader() const {
  watch->AddReader();
  if (reports_bad) progress->AddReader(stream);
}

absl::Status StreamSpec::EndReader() const {
  watch->EndReader();
  return reports_bad ? progress->EndReader(stream) : absl::OkStatus();
}

std::vector<Part> CutBatch(const StreamSpec& spec, absl::Span<const BlockRange> batch,
                           absl::Span<const ProvenanceRange> riders, uint32_t epoch, bool last) {
  uint64_t samples = 0;
  for (const BlockRange& range : batch) samples += range.size();
  const uint64_t num_parts = static_cast<uint64_t>(spec.job.nn_worker().replicas());
  std::vector<Part> parts;
  for (uint64_t p = 0; p < num_parts; ++p) {
    const uint64_t from = samples * p / num_parts;
    const uint64_t to = samples * (p + 1) / num_parts;
    if (from == to && !spec.ordered) continue;
    Part part = MakePart(spec, Slice(batch, from, to), from, epoch, p);
    if (spec.ordered) part.header.mutable_part()->set_last_of_lane(last);
    parts.push_back(std::move(part));
  }
  if (parts.empty() && !riders.empty()) parts.push_back(EmptyPart(spec, epoch));
  for (const ProvenanceRange& rider : riders) {
    *parts.back().header.mutable_part()->add_provenance() = rider;
  }
  return parts;
}

Part EmptyPart(const StreamSpec& spec, uint32_t epoch) { return MakePart(spec, {}, 0, epoch, 0); }

}  // namespace satrap
