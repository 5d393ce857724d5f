#include "data_loader/parser/libsvm_parser.h"

#include "data_loader/parser/number.h"
#include "data_loader/parser/tokens.h"

namespace satrap {
namespace {

class LibsvmParser final : public Parser {
 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    if (!TakeBinaryLabel(&line, block)) return "an unknown label";
    absl::string_view token;
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
