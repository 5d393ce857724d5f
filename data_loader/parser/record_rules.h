// The rules that decide whether text is a good record or a bad one (DataConfig.record_rules). A run
// keeps the rules that it began with: its ledger counts the records that were good by them, so one
// record more in a file that is read again would shift all records after it.

#ifndef SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_
#define SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_

#include "proto/data.pb.h"

namespace satrap {

enum class RecordRules {
  kFirst,   // one spelling of labels and times; no comments and no `qid` in libsvm and libffm
  kNewest,  // what docs/formats.md says
};

inline RecordRules RulesOf(const DataConfig& data) {
  return data.record_rules() == 0 ? RecordRules::kFirst : RecordRules::kNewest;
}

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_PARSER_RECORD_RULES_H_
