// Criteo's click log: label, 13 integers, 26 strings, separated by tabs; an empty field is missing.
// docs/formats.md, "Criteo TSV", says which records are bad.

#ifndef SATRAP_DATA_LOADER_PARSER_CRITEO_TSV_PARSER_H_
#define SATRAP_DATA_LOADER_PARSER_CRITEO_TSV_PARSER_H_

#include <memory>

#include "data_loader/parser/parser.h"

namespace satrap {

std::unique_ptr<Parser> NewCriteoTsvParser();

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_CRITEO_TSV_PARSER_H_
