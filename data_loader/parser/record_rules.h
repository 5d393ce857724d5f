// By which rules text is a good record or a bad one (DataConfig.record_rules). A run keeps those
// that it began with: its ledger counts the records that were good by them, so another record in a
// file that is read again would shift all that come after it.

#ifndef SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_
#define SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_

#include "proto/data.pb.h"

namespace satrap {

enum class RecordRules {
  kFirst,  // labels and times in one spelling each; neither comments nor `qid` in libsvm and libffm
  kNewest,  // what docs/formats.md says
};

inline RecordRules RulesOf(const DataConfig& data) {
  return data.record_rules() == 0 ? RecordRules::kFirst : RecordRules::kNewest;
}

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_
