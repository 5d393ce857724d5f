#include "data_loader/parser/parser.h"

#include "common/base/check.h"
#include "data_loader/parser/criteo_tsv_parser.h"
#include "data_loader/parser/csv_parser.h"
#include "data_loader/parser/libffm_parser.h"
#include "data_loader/parser/libsvm_parser.h"
#include "data_loader/parser/record_rules.h"

namespace satrap {

std::unique_ptr<Parser> NewParser(const DataConfig& data, Stream stream) {
  switch (data.format_case()) {
    case DataConfig::kCriteoTsv:
      return NewCriteoTsvParser();
    case DataConfig::kCsv:
      return NewCsvParser(data.csv(), stream, RulesOf(data));
    case DataConfig::kLibsvm:
      return NewLibsvmParser(data.libsvm(), RulesOf(data));
    case DataConfig::kLibffm:
      return NewLibffmParser(data.libffm(), RulesOf(data));
    case DataConfig::kRecord:
    case DataConfig::kSynthetic:
    case DataConfig::FORMAT_NOT_SET:
      break;
  }
  CHECK(false) << "no text format";
  return nullptr;
}

}  // namespace satrap
