#include "data_loader/check/record_size.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/batch/transfer.h"
#include "common/config/job_facts.h"

namespace satrap {
namespace {

// Headers and the gaps between sections.
constexpr double kRoomForHeaders = 16384;
constexpr double kKeyBytes = 8;
constexpr double kIndexBytes = 4;

double ValueBytes(WireDtype dtype) { return dtype == F32 ? 4 : 2; }

}  // namespace

RecordSize::RecordSize(const JobConfig& job, const RecordSchema& schema)
    : limit_(static_cast<double>(job.max_message_bytes()) - kRoomForHeaders) {
  if (job.tables().empty()) return;  // nothing is looked up
  put_bytes_ = 4.0 * static_cast<double>(job.data().numerics_size() + schema.labels.size()) + 20;
  part_bytes_ = put_bytes_;
  for (const FeatureConfig& feature : job.data().features()) {
    const double values = RowValues(job.tables(TableIndexOf(feature, job)));
    const double to_rank = values * ValueBytes(job.embedding_worker().wire_dtype());
    const double looked_up = (kKeyBytes + values * ValueBytes(job.embedding_ps().wire_dtype())) /
                             std::max(1, job.embedding_ps().replicas());
    const bool sends_rows = TransferOf(feature, job) == FeatureConfig::ROWS;
    const int column = schema.IndexOfIdList(ColumnOf(feature));
    if (column < 0 || feature.cross_columns_size() > 0 ||
        feature.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) {
      put_bytes_ += kKeyBytes + kIndexBytes;
      part_bytes_ += to_rank + kIndexBytes;
      lookup_bytes_ += looked_up;
      continue;
    }
    const double weight_bytes = schema.weighted[static_cast<size_t>(column)] ? sizeof(float) : 0;
    if (!sends_rows) part_bytes_ += to_rank;
    lists_.push_back(
        {static_cast<size_t>(column), ColumnOf(feature), kKeyBytes + weight_bytes,
         sends_rows ? kIndexBytes + weight_bytes : 0, sends_rows ? to_rank : 0, looked_up,
         feature.pooling() == FeatureConfig::NONE ? static_cast<size_t>(feature.max_length())
                                                  : std::numeric_limits<size_t>::max()});
  }
}

double RecordSize::LargestMessage(const RecordBlock& records, size_t row, bool exact) const {
  double put = put_bytes_, part = part_bytes_, lookup = lookup_bytes_;
  absl::flat_hash_set<uint64_t> different;
  for (const List& list : lists_) {
    const absl::Span<const uint64_t> ids = records.list_ids(row, list.column);
    const absl::Span<const uint64_t> used = ids.subspan(0, list.most_ids);
    double rows = static_cast<double>(used.size());
    if (exact) {
      different.clear();
      different.insert(used.begin(), used.end());
      rows = static_cast<double>(different.size());
    }
    put += static_cast<double>(ids.size()) * list.id_bytes;
    part += static_cast<double>(used.size()) * list.sent_bytes + rows * list.row_bytes;
    lookup += rows * list.lookup_bytes;
  }
  return std::max({put, part, lookup});
}

bool RecordSize::IsTooLarge(const RecordBlock& records, std::string* reason) const {
  if (lists_.empty()) return false;
  const size_t row = records.rows() - 1;
  if (LargestMessage(records, row, /*exact=*/false) <= limit_) return false;
  const double bytes = LargestMessage(records, row, /*exact=*/true);
  if (bytes <= limit_) return false;
  const auto longest =
      std::max_element(lists_.begin(), lists_.end(), [&](const List& a, const List& b) {
        return records.list_ids(row, a.column).size() < records.list_ids(row, b.column).size();
      });
  *reason = absl::StrCat("the record alone needs a message of ", static_cast<uint64_t>(bytes),
                         " bytes, more than max_message_bytes allows: column ", longest->name,
                         " holds ", records.list_ids(row, longest->column).size(),
                         " ids. Raise max_message_bytes, or shorten the list");
  return true;
}

}  // namespace satrap
