#include "data_loader/parser/libsvm_parser.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/number.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/parser/tokens.h"

namespace satrap {
namespace {

constexpr absl::string_view kQuery = "qid:";

class LibsvmParser final : public Parser {
 public:
  LibsvmParser(const LibsvmFormat& format, RecordRules rules)
      : Parser(rules == RecordRules::kNewest ? kTokenComment : ""),
        newest_(rules == RecordRules::kNewest),
        groups_(format.qid()),
        labels_("data.libsvm", format.numeric_label(), format.classes(), rules) {}

 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    if (newest_) line = line.substr(0, line.find(kTokenComment[0]));
    absl::string_view token;
    if (!NextToken(&line, &token)) return Bad(labels_.BadLabel(""));
    if (!labels_.Read(token, block->row_labels())) return Bad(labels_.BadLabel(token));
    bool has_query = false;
    while (NextToken(&line, &token)) {
      const size_t colon = token.find(':');
      uint64_t index;
      float value;
      if (colon == absl::string_view::npos || !ParseUnsigned(token.substr(0, colon), &index) ||
          !ParseNumber(token.substr(colon + 1), true, &value)) {
        if (!newest_ || !TakeQuery(token, &has_query, block)) return Bad(BadToken(token));
        continue;
      }
      block->AppendToList(0, index, value);
    }
    if (groups_ && !has_query) {
      return Bad("there is no qid:QUERY, which data.libsvm.qid expects in each record");
    }
    return nullptr;
  }

  // Whether `token` is a query, and the record's first one.
  bool TakeQuery(absl::string_view token, bool* has_query, RecordBlock* block) const {
    if (*has_query || !absl::ConsumePrefix(&token, kQuery) || token.empty()) return false;
    *has_query = true;
    if (groups_) block->set_group(StringId(token));
    return true;
  }

  std::string BadToken(absl::string_view token) const {
    if (newest_ && absl::StartsWith(token, kQuery)) {
      return absl::StrCat("there is ", ShownText(token),
                          ", but a record has at most one token qid:QUERY, and QUERY is not empty");
    }
    return absl::StrCat(
        "expected INDEX:VALUE (a whole number up to 18446744073709551615, and a number, such as "
        "3:0.5), got ",
        ShownText(token));
  }

  const bool newest_;
  const bool groups_;
  const TokenLabels labels_;
};

}  // namespace

std::unique_ptr<Parser> NewLibsvmParser(const LibsvmFormat& format, RecordRules rules) {
  return std::make_unique<LibsvmParser>(format, rules);
}

}  // namespace satrap
