#include "deploy/report/json.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace satrap {

// The text written so far says whether a comma is due, so no stack of open brackets is needed:
// after an opening bracket or a colon none is, after anything else one is.
void JsonWriter::BeforeValue() {
  if (text_.empty()) return;
  const char last = text_.back();
  if (last != '{' && last != '[' && last != ':') text_ += ',';
}

void JsonWriter::Open(char bracket) {
  BeforeValue();
  text_ += bracket;
}

void JsonWriter::Close(char bracket) { text_ += bracket; }

void JsonWriter::Key(absl::string_view key) {
  String(key);
  text_ += ':';
}

void JsonWriter::String(absl::string_view value) {
  BeforeValue();
  text_ += '"';
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&text_, "\\u%04x", static_cast<unsigned>(c));
    } else {
      text_ += c;
    }
  }
  text_ += '"';
}

void JsonWriter::Number(double value) {
  BeforeValue();
  if (!std::isfinite(value)) {
    text_ += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  text_.append(digits, end.ptr);
}

void JsonWriter::Number(int64_t value) {
  BeforeValue();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Number(uint64_t value) {
  BeforeValue();
  absl::StrAppend(&text_, value);
}

void JsonWriter::Bool(bool value) {
  BeforeValue();
  text_ += value ? "true" : "false";
}

}  // namespace satrap
