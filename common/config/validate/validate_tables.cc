#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "common/config/setting_rules.h"
#include "common/config/validate/validate_job.h"

namespace satrap {
namespace {

void ValidateSegmentNames(const TableConfig& table, const std::string& path, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < table.segments_size(); ++i) {
    const SegmentConfig& segment = table.segments(i);
    const std::string segment_path = absl::StrCat(path, ".segments[", i, "]");
    if (segment.name().empty() || !names.insert(segment.name()).second) {
      problems->Add(segment_path,
                    absl::StrCat("needs a name of its own, got '", segment.name(), "'"));
    }
  }
}

}  // namespace

void ValidateTables(const JobConfig& job, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_set<uint32_t> ids;
  for (int i = 0; i < job.tables_size(); ++i) {
    const TableConfig& table = job.tables(i);
    const std::string path = absl::StrCat("tables[", i, "]");
    if (table.name().empty() || !names.insert(table.name()).second) {
      problems->Add(path, absl::StrCat("needs a name of its own, got '", table.name(), "'"));
    }
    if (!table.has_id()) problems->Add(absl::StrCat(path, ".id"), "must be given");
    if (!ids.insert(table.id()).second) {
      problems->Add(absl::StrCat(path, ".id"), absl::StrCat(table.id(), " is taken"));
    }
    // GLOBAL needs a moment at which a step has reached all rows, but in HYBRID there is none.
    if (table.semantics() == TableConfig::GLOBAL && job.mode() != JobConfig::SYNC) {
      problems->Add(path + ".semantics",
                    absl::StrCat("GLOBAL needs mode SYNC, got ", JobConfig::Mode_Name(job.mode())));
    }
    ValidateSegmentNames(table, path, problems);
    CheckRules(table, path + ".", problems);
  }
}

}  // namespace satrap
