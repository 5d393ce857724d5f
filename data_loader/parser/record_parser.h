// The parser of Record messages (proto/record.proto): one message is one row. docs/formats.md,
// "Record messages", says which are bad. Parse takes the message's bytes as `line`.
//
// The bytes may be anything: a message that is not a Record of the job's columns is bad, with a
// reason, and appends nothing.

#ifndef SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_block.h"

namespace satrap {

// `schema` says which columns a Record has (TextSchemaOf). Weight, group and time of a record are
// dropped where it has none. A record without a time has that of its message.
std::unique_ptr<Parser> NewRecordParser(const RecordSchema& schema);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_RECORD_PARSER_H_
