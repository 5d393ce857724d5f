// libsvm: "label index:value ...". docs/formats.md, "libsvm and libffm", says which records are
// bad.

#ifndef SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"

namespace satrap {

std::unique_ptr<Parser> NewLibsvmParser();

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_LIBSVM_PARSER_H_
