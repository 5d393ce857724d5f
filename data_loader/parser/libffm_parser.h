// Parses libffm: "label field:index:value ...". docs/formats.md, "libsvm and libffm", says which
// records are bad.

#ifndef SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "data_loader/parser/record_rules.h"
#include "proto/data.pb.h"

namespace satrap {

// Copies `format`. REQUIRES: `format` is valid
std::unique_ptr<Parser> NewLibffmParser(const LibffmFormat& format,
                                        RecordRules rules = RecordRules::kNewest);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_
