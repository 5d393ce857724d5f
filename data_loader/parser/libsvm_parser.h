// Parses libsvm: "label index:value ...". docs/formats.md, "libsvm and libffm", says which records
// are bad.

#ifndef SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_rules.h"
#include "proto/data.pb.h"

namespace satrap {

// Copies `format`. REQUIRES: `format` is valid
std::unique_ptr<Parser> NewLibsvmParser(const LibsvmFormat& format = LibsvmFormat(),
                                        RecordRules rules = RecordRules::kNewest);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_
