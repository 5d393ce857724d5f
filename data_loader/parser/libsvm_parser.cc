#include "data_loader/parser/libsvm_parser.h"

#include "data_loader/parser/number.h"
#include "data_loader/parser/tokens.h"

namespace satrap {
namespace {

class LibsvmParser final : public Parser {
 public:
  ParseResult Parse(absl::string_view line, RecordBlock* block) override {
    if (line.empty()) return {ParseResult::kEmpty, nullptr};
    block->BeginRow();
    const char* reason = ParseTokens(line, block);
    if (reason != nullptr) {
      block->AbandonRow();
      return BadRecord(reason);
    }
    block->CommitRow();
    return {};
  }

 private:
  static const char* ParseTokens(absl::string_view line, RecordBlock* block) {
    absl::string_view token;
    float label;
    if (!NextToken(&line, &token) || !ParseBinaryLabel(token, &label)) return "an unknown label";
    block->set_label(label);
    while (NextToken(&line, &token)) {
      const size_t colon = token.find(':');
      uint64_t index;
      float value;
      if (colon == absl::string_view::npos || !ParseUnsigned(token.substr(0, colon), &index) ||
          !ParseNumber(token.substr(colon + 1), true, &value)) {
        return "not index:value";
      }
      block->AppendToList(0, index, value);
    }
    return nullptr;
  }
};

}  // namespace

std::unique_ptr<Parser> NewLibsvmParser() { return std::make_unique<LibsvmParser>(); }

}  // namespace satrap
