// A MessageParser turns the value of a Kafka message into rows. The value is one line, any number
// of lines, or a Record (docs/formats.md, "Kafka messages"). The rows also get the columns that the
// job takes from the message's key, headers and time.
//
// Not thread-safe: it keeps scratch memory.

#ifndef SATRAP_DATA_LOADER_KAFKA_MESSAGE_PARSER_H_
#define SATRAP_DATA_LOADER_KAFKA_MESSAGE_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/kafka/message_batch.h"
#include "data_loader/check/first_labels.h"
#include "data_loader/check/record_check.h"
#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_block.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"
#include "proto/kafka.pb.h"

namespace satrap {

class MessageParser {
 public:
  // `kafka` is the configuration of the stream. `check` refuses some of the records that can be
  // parsed; it may be null, and must outlive this object. REQUIRES: `data` and `kafka` come from a
  // valid job
  MessageParser(const DataConfig& data, const KafkaConfig& kafka, Stream stream,
                const RecordCheck* check = nullptr);

  struct BadRecord {
    uint32_t line = 0;  // within the message, from 0
    std::string reason;
    absl::string_view text;  // part of the message
    RecordCheck::Fault fault =
        RecordCheck::Fault::kNone;  // why it was refused; kNone: it does not parse
  };
  // What a message contained besides its rows.
  struct Found {
    std::vector<uint32_t> lines;  // the line of each appended row, from 0; ascending
    std::vector<BadRecord> bad;
    uint32_t empty_lines = 0;  // an empty message and a tombstone count as one
    uint32_t comments = 0;
  };
  // Appends the rows of message i to `records` and sets `*found`. If a record's text has no time,
  // the record gets the message's time, or 0. REQUIRES: `records` has SchemaOf(data)
  void Parse(const MessageBatch& batch, size_t i, RecordBlock* records, Found* found);

  // `first`, which may be null, receives the labels of all records that can be parsed, even of
  // those that the check refuses. It must outlive this object.
  void set_first_labels(FirstLabels* first) { first_labels_ = first; }

  // Whether the text of a bad record may contain line ends or bytes that are not text. (If a
  // message should be one line but has several, the whole message is one bad record.)
  bool keeps_line_ends() const { return format_ != KafkaConfig::LINES || quotes_.has_value(); }

 private:
  struct Column {
    KafkaColumn::From from;
    std::string header;
    size_t index;  // among the message columns of its kind
  };
  void SetColumns(const MessageBatch& batch, size_t i, RecordBlock* records) const;
  void ParseLines(absl::string_view value, RecordBlock* records, Found* found);
  void ParseOne(absl::string_view text, uint32_t line, RecordBlock* records, Found* found);
  // The length in bytes of the first record of `rest`, including its end. Sets `*lines` to the
  // record's number of lines. REQUIRES: *lines is 1
  size_t RecordEnd(absl::string_view rest, uint32_t* lines) const;

  const KafkaConfig::MessageFormat format_;
  const RecordCheck* const check_;
  FirstLabels* first_labels_ = nullptr;
  std::unique_ptr<Parser> parser_;
  absl::optional<QuoteRules> quotes_;  // records may span lines
  std::vector<Column> columns_;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_MESSAGE_PARSER_H_
