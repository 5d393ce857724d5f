#include "data_loader/parser/libffm_parser.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "data_loader/parser/bad_text.h"
#include "data_loader/parser/number.h"
#include "data_loader/parser/tokens.h"

namespace satrap {
namespace {

class LibffmParser final : public Parser {
 public:
  LibffmParser(const LibffmFormat& format, RecordRules rules)
      : Parser(rules == RecordRules::kNewest ? kTokenComment : ""),
        comments_(rules == RecordRules::kNewest),
        num_fields_(static_cast<uint64_t>(format.num_fields())),
        labels_("data.libffm", format.numeric_label(), format.classes(), rules) {}

 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    if (comments_) line = line.substr(0, line.find(kTokenComment[0]));
    absl::string_view token;
    if (!NextToken(&line, &token)) return Bad(labels_.BadLabel(""));
    if (!labels_.Read(token, block->row_labels())) return Bad(labels_.BadLabel(token));
    while (NextToken(&line, &token)) {
      const size_t first = token.find(':');
      const size_t second = first == absl::string_view::npos ? first : token.find(':', first + 1);
      uint64_t field;
      uint64_t index;
      float value;
      if (second == absl::string_view::npos || !ParseUnsigned(token.substr(0, first), &field) ||
          !ParseUnsigned(token.substr(first + 1, second - first - 1), &index) ||
          !ParseNumber(token.substr(second + 1), true, &value)) {
        return Bad(
            absl::StrCat("expected FIELD:INDEX:VALUE (two whole numbers and a number, such as "
                         "0:3:0.5), got ",
                         ShownText(token)));
      }
      if (field >= num_fields_) {
        return Bad(absl::StrCat("there is ", ShownText(token), " of field ", field,
                                ", but fields are below ", num_fields_,
                                " (data.libffm.num_fields)"));
      }
      block->AppendToList(field, index, value);
    }
    return nullptr;
  }

  const bool comments_;
  const uint64_t num_fields_;
  const TokenLabels labels_;
};

}  // namespace

std::unique_ptr<Parser> NewLibffmParser(const LibffmFormat& format, RecordRules rules) {
  return std::make_unique<LibffmParser>(format, rules);
}

}  // namespace satrap
