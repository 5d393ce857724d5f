// The rules that decide whether text is a good or a bad record (DataConfig.record_rules). A run
// keeps the rules that it began with, because its ledger counts the records that are good by those
// rules. Under other rules a file might have one more good record, and all records after it would
// have other numbers.

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
