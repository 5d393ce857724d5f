// The columns that a job's records have, by kind, whatever their format. The validator, the data
// loader and the layout of batches learn from here what a format holds. Only the data loader also
// needs the format's parser.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_COMMON_CONFIG_RECORD_SCHEMA_H_
#define SATRAP_COMMON_CONFIG_RECORD_SCHEMA_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/data.pb.h"

namespace satrap {

// The columns of a format, grouped by kind. A column's index is its position within its kind.
// Columns that come from a record's message instead of its text are the last of their kind.
struct RecordSchema {
  std::vector<std::string> ids;       // exactly one id, or missing
  std::vector<std::string> id_lists;  // any number of ids
  std::vector<bool> weighted;         // by id list: whether its ids have values
  std::vector<std::string> numerics;
  std::vector<std::string> labels = {"label"};
  std::vector<bool> numeric_labels;  // by label, if columns are declared: may be other than 0 and 1
  bool has_weight = false;
  bool has_group = false;
  bool has_time = false;
  bool is_text = false;                          // whether records are lines of text
  size_t message_ids = 0, message_numerics = 0;  // columns of messages among ids and numerics

  // Whether a feature can read the column: `ids` or `id_lists` has it.
  bool HasIdsOf(absl::string_view name) const {
    return IndexOfId(name) >= 0 || IndexOfIdList(name) >= 0;
  }
  // -1 if there is no such column.
  int IndexOfId(absl::string_view name) const;
  int IndexOfIdList(absl::string_view name) const;
  int IndexOfNumeric(absl::string_view name) const;
};

// All columns of the job's records: those of TextSchemaOf, and those that its topics take from
// messages. If the job reads topics, every record has a time. Without a format there are no
// columns.
RecordSchema SchemaOf(const DataConfig& data);
// The columns of a line or of a Record, which the parser fills in.
RecordSchema TextSchemaOf(const DataConfig& data);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_RECORD_SCHEMA_H_
