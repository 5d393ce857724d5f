// Parses separated values by a declared schema. docs/formats.md, "CSV and TSV", says which records
// are bad and how quotes are treated.

#ifndef SATRAP_DATA_LOADER_PARSER_CSV_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_CSV_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_rules.h"
#include "proto/data.pb.h"

namespace satrap {

// Copies `format`. REQUIRES: `format` is valid
std::unique_ptr<Parser> NewCsvParser(const CsvFormat& format, Stream stream,
                                     RecordRules rules = RecordRules::kNewest);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_CSV_PARSER_H_
