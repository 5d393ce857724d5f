#include "deploy/report/warm_start_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/count_text.h"
#include "common/json/json.h"

namespace satrap {
namespace {

using Names = google::protobuf::RepeatedPtrField<std::string>;

std::string TableText(const WarmStartResult::Table& table) {
  std::string text = absl::StrCat("  table ", table.name(), ": ", Counted(table.rows(), "row"));
  if (table.features_size() > 0) {
    absl::StrAppend(&text, "; of ", absl::StrJoin(table.features(), ", "));
  }
  if (table.features_without_rows_size() > 0) {
    absl::StrAppend(&text, "; none of ", absl::StrJoin(table.features_without_rows(), ", "));
  }
  return text + "\n";
}

std::string NumberOf(const Names& names, const char* what) {
  return Counted(static_cast<uint64_t>(names.size()), what);
}

}  // namespace

void CopyWarmStart(const WarmStartResult& result, ReportFile::WarmStart* to) {
  WarmStartResult all = result;  // these fields must be set in any case
  all.set_model(result.model());
  all.set_step(result.step());
  all.set_optimizer_state(result.optimizer_state());
  CHECK_OK(ParseJson(JsonOf(all), to));
}

std::string WarmStartText(const WarmStartResult& result) {
  std::string text =
      absl::StrCat("began with   ", result.model(), " (step ", CountText(result.step()), ")\n");
  for (const WarmStartResult::Table& table : result.tables()) {
    absl::StrAppend(&text, TableText(table));
  }
  absl::StrAppend(&text, "  dense: ", NumberOf(result.parameters(), "parameter"),
                  result.optimizer_state() ? " with the optimizer's state" : "");
  if (result.fresh_size() > 0) {
    absl::StrAppend(&text, "; began anew: ", absl::StrJoin(result.fresh(), ", "));
  }
  if (result.ignored_size() > 0) {
    absl::StrAppend(&text, "; not taken: ", absl::StrJoin(result.ignored(), ", "));
  }
  absl::StrAppend(&text, "\n");
  for (const std::string& warning : result.warnings()) {
    absl::StrAppend(&text, "warning      ", warning, "\n");
  }
  return text;
}

}  // namespace satrap
