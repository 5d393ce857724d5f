#include "data_loader/first_labels_of_files.h"

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "data_loader/batch/file_block_reader.h"
#include "data_loader/check/first_labels.h"

namespace satrap {

absl::Status CheckFirstLabels(const StreamSpec& train, uint32_t loader, uint32_t loaders) {
  if (train.click_log != nullptr || train.splits.empty()) return absl::OkStatus();
  FirstLabels first(train.check.labels());
  const std::unique_ptr<Parser> parser = NewParser(train.job.data(), train.stream);
  // Bad records are counted and kept later, by training. Here they only end the search if hardly
  // any record is good.
  ReadProgress::Options limit;
  limit.max_bad_fraction = train.job.data().max_bad_fraction();
  ReadProgress unreported(std::move(limit));
  FileBlockOptions options;
  options.stream = train.stream;
  options.block_rows = FirstLabels::kRecords;
  options.filter = &train.filter;
  options.parser = parser.get();
  options.progress = &unreported;
  Block block(train.schema);
  for (uint32_t split = loader; split < train.splits.size() && !first.full(); split += loaders) {
    ASSIGN_OR_RETURN(const std::unique_ptr<BlockReader> reader,
                     NewFileBlockReader(train.splits[split], split, options));
    while (!first.full()) {
      const absl::StatusOr<bool> found = reader->Next(&block);
      // Ignore this error here: training reports that too many records are bad, and names their
      // file.
      if (absl::IsFailedPrecondition(found.status())) return absl::OkStatus();
      RETURN_IF_ERROR(found.status());
      if (!*found) break;
      for (size_t row = 0; row < block.records.rows(); ++row) first.Add(block.records.labels(row));
    }
  }
  return first.Check();
}

}  // namespace satrap
