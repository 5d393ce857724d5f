#include "data_loader/parser/libffm_parser.h"

#include "data_loader/parser/number.h"
#include "data_loader/parser/tokens.h"

namespace satrap {
namespace {

class LibffmParser final : public Parser {
 public:
  explicit LibffmParser(const LibffmFormat& format)
      : num_fields_(static_cast<uint64_t>(format.num_fields())) {}

 private:
  const char* ParseRow(absl::string_view line, RecordBlock* block) override {
    if (!TakeBinaryLabel(&line, block)) return "an unknown label";
    absl::string_view token;
    while (NextToken(&line, &token)) {
      const size_t first = token.find(':');
      const size_t second = first == absl::string_view::npos ? first : token.find(':', first + 1);
      uint64_t field;
      uint64_t index;
      float value;
      if (second == absl::string_view::npos || !ParseUnsigned(token.substr(0, first), &field) ||
          !ParseUnsigned(token.substr(first + 1, second - first - 1), &index) ||
          !ParseNumber(token.substr(second + 1), true, &value)) {
        return "not field:index:value";
      }
      if (field >= num_fields_) return "a field is not below num_fields";
      block->AppendToList(field, index, value);
    }
    return nullptr;
  }

  const uint64_t num_fields_;
};

}  // namespace

std::unique_ptr<Parser> NewLibffmParser(const LibffmFormat& format) {
  return std::make_unique<LibffmParser>(format);
}

}  // namespace satrap
