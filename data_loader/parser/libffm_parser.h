// libffm: "label field:index:value ...". docs/formats.md, "libsvm and libffm", says which records
// are bad.

#ifndef SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"
#include "proto/data.pb.h"

namespace satrap {

std::unique_ptr<Parser> NewLibffmParser(const LibffmFormat& format);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_LIBFFM_PARSER_H_
