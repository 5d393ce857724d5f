// A MessageMaker turns lines of files into Kafka messages. A message is one or several lines as
// they are, or one Record (proto/record.proto) made from one line.
//
// Not thread-safe.

#ifndef SATRAP_DATA_LOADER_KAFKA_MESSAGE_MAKER_H_
#define SATRAP_DATA_LOADER_KAFKA_MESSAGE_MAKER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_block.h"
#include "proto/data.pb.h"
#include "proto/record.pb.h"

namespace satrap {

struct MessageOptions {
  enum Format { kLines, kRecord };
  Format format = kLines;
  int lines_per_message = 1;  // lines per message, for kLines
  // The columns of a line that hold key and time: a name among the job's CSV or Criteo columns, or
  // a number from 1. Empty: none.
  std::string key_column;
  std::string time_column;
  int64_t time_unit_ms = 1000;   // the column counts seconds, or milliseconds if it is 1
  std::string separator = "\t";  // between columns, if there is no job that says it
};

// Fills `record` so that RecordParser, applied to it, gives row `row` of `block`.
void RecordOfRow(const RecordSchema& schema, const RecordBlock& block, size_t row, Record* record);

class MessageMaker {
 public:
  struct Message {
    std::string value;
    absl::optional<std::string> key;
    int64_t time_ms = 0;  // 0: none was given
    uint64_t lines = 0;
  };

  // `data` describes the lines; null if no job was given. INVALID_ARGUMENT for a column that does
  // not exist, for Records without a job, and for several lines per Record.
  static absl::StatusOr<std::unique_ptr<MessageMaker>> Create(const MessageOptions& options,
                                                              const DataConfig* data);

  // Adds one line, without its line end. Returns whether `*message` is now complete; its key and
  // time are those of its first line. Empty lines are skipped, and so are comments if Records are
  // made. INVALID_ARGUMENT for a line without the key or time column and, if Records are made, for
  // a line that is not a good record.
  absl::StatusOr<bool> Add(absl::string_view line, Message* message);
  // Completes the message of the lines that were added last. False if there are none.
  bool Finish(Message* message);

  const Parser* parser() const { return parser_.get(); }  // null without a job

 private:
  MessageMaker(const MessageOptions& options, const DataConfig* data);
  // The index of a column in a line; -1 if `name` is empty.
  absl::StatusOr<int> FindColumn(const std::string& name, const DataConfig* data) const;
  absl::Status Begin(absl::string_view line);
  absl::StatusOr<std::string> Field(absl::string_view line, int column);

  const MessageOptions options_;
  absl::optional<QuoteRules> quotes_;  // absent: fields are never quoted
  char separator_ = '\t';
  int key_ = -1;
  int time_ = -1;
  std::unique_ptr<Parser> parser_;
  RecordSchema schema_;
  std::unique_ptr<RecordBlock> block_;
  Record record_;
  std::string scratch_;
  Message open_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_MESSAGE_MAKER_H_
