// The parser of Record messages (proto/record.proto): each message is one row. docs/formats.md,
// "Record messages", says which messages are bad. `line` in Parse is the message's bytes.
//
// The bytes may be anything: a message that is not a Record with the job's columns is bad, with a
// reason, and appends nothing.

#ifndef SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_block.h"

namespace satrap {

// `schema` says which columns a Record has (TextSchemaOf). A record's weight, group or time is
// ignored if the schema has no such column. A record without a time has the time of its message.
std::unique_ptr<Parser> NewRecordParser(const RecordSchema& schema);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_
