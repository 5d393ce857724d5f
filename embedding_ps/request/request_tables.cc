#include "embedding_ps/request/request_tables.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {

absl::StatusOr<int> RequestTables::AddTable(uint32_t table_id) {
  ASSIGN_OR_RETURN(const int position, ownership_.PositionOf(table_id));
  if (named_[position]) {
    return absl::InvalidArgumentError(
        absl::StrCat("tables.table: the request names table ", table_id, " twice"));
  }
  named_[position] = true;
  last_table_id_ = table_id;
  return position;
}

void RequestTables::AddSection(const Section& section, const char* field) {
  if (section.size_bytes() == 0) return;
  ranges_.push_back({section.offset_bytes(), section.offset_bytes() + section.size_bytes(), field,
                     last_table_id_});
}

absl::Status RequestTables::CheckSectionsDisjoint() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges_.size(); ++i) {
    const Range& before = ranges_[i - 1];
    const Range& at = ranges_[i];
    if (at.begin < before.end) {
      return absl::InvalidArgumentError(
          absl::StrCat(at.field, ": the section of table ", at.table_id, " at byte ", at.begin,
                       " overlaps ", before.field, " of table ", before.table_id));
    }
  }
  return absl::OkStatus();
}

}  // namespace satrap
