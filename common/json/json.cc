#include "common/json/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace satrap {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Whether the field becomes an object with a key for each name. A protobuf map would not do
// instead: a map has no order, but docs/formats.md fixes one.
bool IsByName(const FieldDescriptor* field) {
  if (!field->is_repeated() || field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return false;
  const Descriptor* const each = field->message_type();
  return each->field_count() == 2 && each->field(0)->name() == "name" &&
         (each->field(1)->name() == "value" || each->field(1)->name() == "values");
}

class Writer {
 public:
  explicit Writer(NumberFormat format) : format_(format) {}

  void Object(const Message& message) {
    const Reflection* const reflection = message.GetReflection();
    const Descriptor* const type = message.GetDescriptor();
    text_ += '{';
    bool first = true;
    for (int i = 0; i < type->field_count(); ++i) {
      const FieldDescriptor* const field = type->field(i);
      const bool by_name = IsByName(field);
      const int size = field->is_repeated() ? reflection->FieldSize(message, field) : 0;
      if (field->is_repeated() ? by_name && size == 0 : !reflection->HasField(message, field)) {
        continue;
      }
      if (!first) text_ += ',';
      first = false;
      String(field->name());
      text_ += ':';
      if (!field->is_repeated()) {
        Value(message, field, -1);
        continue;
      }
      text_ += by_name ? '{' : '[';
      for (int at = 0; at < size; ++at) {
        if (at > 0) text_ += ',';
        by_name ? Named(reflection->GetRepeatedMessage(message, field, at))
                : Value(message, field, at);
      }
      text_ += by_name ? '}' : ']';
    }
    text_ += '}';
  }
  std::string Take() { return std::move(text_); }

 private:
  void Named(const Message& named) {
    const Reflection* const reflection = named.GetReflection();
    String(reflection->GetString(named, named.GetDescriptor()->field(0)));
    text_ += ':';
    Value(named, named.GetDescriptor()->field(1), -1);
  }

  // Writes the field's value, or the value at index `at` if the field is repeated.
  void Value(const Message& message, const FieldDescriptor* field, int at) {
    const Reflection* const r = message.GetReflection();
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return Append(at < 0 ? r->GetInt64(message, field)
                             : r->GetRepeatedInt64(message, field, at));
      case FieldDescriptor::CPPTYPE_UINT64:
        return Append(at < 0 ? r->GetUInt64(message, field)
                             : r->GetRepeatedUInt64(message, field, at));
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return Number(at < 0 ? r->GetDouble(message, field)
                             : r->GetRepeatedDouble(message, field, at));
      case FieldDescriptor::CPPTYPE_BOOL:
        return Append((at < 0 ? r->GetBool(message, field) : r->GetRepeatedBool(message, field, at))
                          ? "true"
                          : "false");
      case FieldDescriptor::CPPTYPE_STRING:
        return String(at < 0 ? r->GetString(message, field)
                             : r->GetRepeatedString(message, field, at));
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Object(at < 0 ? r->GetMessage(message, field)
                             : r->GetRepeatedMessage(message, field, at));
      default:
        CHECK(false) << field->full_name();
    }
  }

  void Append(const absl::AlphaNum& text) { absl::StrAppend(&text_, text); }

  void Number(double value) {
    char digits[400];  // DBL_MAX has 309 before the point
    // JSON cannot express infinities and NaN.
    if (!std::isfinite(value)) return Append("null");
    if (format_ != nullptr) {
      std::snprintf(digits, sizeof(digits), format_, value);
      return Append(digits);
    }
    text_.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }

  void String(absl::string_view value) {
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

  const NumberFormat format_;
  std::string text_;
};

class Reader {
 public:
  explicit Reader(absl::string_view text) : text_(text) {}

  absl::Status All(Message* message) {
    RETURN_IF_ERROR(Object(message, 0));
    SkipBlanks();
    return at_ == text_.size() ? absl::OkStatus() : Expected("the end");
  }

 private:
  // Limits the depth: reading recurses, and a damaged or foreign file must not exhaust the stack.
  // Texts that are written here have fewer than ten levels.
  static constexpr int kMostDepth = 32;

  // Calls `take` for each key of an object. The cursor is then before the key's value.
  template <typename Take>
  absl::Status Keys(int depth, const Take& take) {
    if (depth > kMostDepth) return Expected("fewer objects and arrays within one another");
    if (!Eat('{')) return Expected("an object");
    if (Eat('}')) return absl::OkStatus();
    do {
      std::string key;
      RETURN_IF_ERROR(String(&key));
      if (!Eat(':')) return Expected("a colon");
      RETURN_IF_ERROR(take(key));
    } while (Eat(','));
    return Eat('}') ? absl::OkStatus() : Expected("a comma or }");
  }

  template <typename Take>
  absl::Status Values(int depth, const Take& take) {
    if (depth > kMostDepth) return Expected("fewer objects and arrays within one another");
    if (!Eat('[')) return Expected("an array");
    if (Eat(']')) return absl::OkStatus();
    do {
      RETURN_IF_ERROR(take());
    } while (Eat(','));
    return Eat(']') ? absl::OkStatus() : Expected("a comma or ]");
  }

  absl::Status Object(Message* message, int depth) {
    return Keys(depth, [&](const std::string& key) -> absl::Status {
      const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(key);
      // A later build may have written fields that this build does not know.
      if (field == nullptr) return Skip(depth + 1);
      const Reflection* const reflection = message->GetReflection();
      if (IsByName(field)) {
        return Keys(depth + 1, [&](const std::string& name) {
          Message* const named = reflection->AddMessage(message, field);
          named->GetReflection()->SetString(named, named->GetDescriptor()->field(0), name);
          return Value(named, named->GetDescriptor()->field(1), depth + 2);
        });
      }
      if (!field->is_repeated()) return Value(message, field, depth + 1);
      return Values(depth + 1, [&] { return Value(message, field, depth + 2); });
    });
  }

  template <typename T>
  absl::Status Whole(const char* expected, T* to) {
    const size_t before = at_;
    if (absl::SimpleAtoi(Word(), to)) return absl::OkStatus();
    at_ = before;
    return Expected(expected);
  }

  // Sets the field, or appends to it if it is repeated.
  absl::Status Value(Message* message, const FieldDescriptor* field, int depth) {
    const Reflection* const r = message->GetReflection();
    const bool many = field->is_repeated();
    const size_t before = at_;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64: {
        int64_t value;
        RETURN_IF_ERROR(Whole("a whole number of 64 bits", &value));
        many ? r->AddInt64(message, field, value) : r->SetInt64(message, field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_UINT64: {
        uint64_t value;
        RETURN_IF_ERROR(Whole("a whole number of 64 bits that is not negative", &value));
        many ? r->AddUInt64(message, field, value) : r->SetUInt64(message, field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_DOUBLE: {
        double value = std::numeric_limits<double>::quiet_NaN();
        if (const absl::string_view word = Word();
            word != "null" &&
            // SimpleAtod would also take "inf" and "nan", which are not JSON.
            (word.empty() || absl::ascii_isalpha(word[0]) || !absl::SimpleAtod(word, &value))) {
          at_ = before;
          return Expected("a number or null");
        }
        many ? r->AddDouble(message, field, value) : r->SetDouble(message, field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_BOOL: {
        const absl::string_view word = Word();
        if (word != "true" && word != "false") {
          at_ = before;
          return Expected("true or false");
        }
        many ? r->AddBool(message, field, word == "true")
             : r->SetBool(message, field, word == "true");
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string value;
        RETURN_IF_ERROR(String(&value));
        many ? r->AddString(message, field, value) : r->SetString(message, field, value);
        return absl::OkStatus();
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return Object(many ? r->AddMessage(message, field) : r->MutableMessage(message, field),
                      depth);
      default:
        CHECK(false) << field->full_name();
        return absl::OkStatus();
    }
  }

  // Skips the value of a key that is not a field of the message.
  absl::Status Skip(int depth) {
    SkipBlanks();
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    if (next == '{') return Keys(depth, [&](const std::string&) { return Skip(depth + 1); });
    if (next == '[') return Values(depth, [&] { return Skip(depth + 1); });
    std::string ignored;
    if (next == '"') return String(&ignored);
    return Word().empty() ? Expected("a value") : absl::OkStatus();
  }

  absl::Status String(std::string* value) {
    if (!Eat('"')) return Expected("a string");
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c != '\\') {
        *value += c;
        continue;
      }
      c = at_ < text_.size() ? text_[at_++] : '\0';
      const absl::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
      if (const size_t escape = kEscapes.find(c); escape != kEscapes.npos) {
        *value += kMeanings[escape];
      } else if (c == 'u') {
        RETURN_IF_ERROR(CodePoint(value));
      } else {
        return Expected("an escape of JSON");
      }
    }
    return Eat('"') ? absl::OkStatus() : Expected("the end of a string");
  }

  // The four digits after "\u", a unit of UTF-16.
  absl::Status Unit(uint32_t* unit) {
    const absl::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    if (digits.size() != 4 || !absl::c_all_of(digits, absl::ascii_isxdigit) ||
        !absl::SimpleHexAtoi(digits, unit)) {
      return Expected("four hexadecimal digits");
    }
    at_ += 4;
    return absl::OkStatus();
  }

  // Appends the character whose escape began with "\u", as UTF-8. Half of a surrogate pair becomes
  // U+FFFD, as in other decoders of JSON.
  absl::Status CodePoint(std::string* value) {
    uint32_t code = 0;
    RETURN_IF_ERROR(Unit(&code));
    if (code >= 0xD800 && code < 0xDC00 && absl::StartsWith(text_.substr(at_), "\\u")) {
      const size_t before = at_;
      uint32_t low = 0;
      at_ += 2;
      RETURN_IF_ERROR(Unit(&low));
      if (low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else {
        at_ = before;
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    const auto add = [&](uint32_t first, int shift) {
      *value += static_cast<char>(first | (code >> shift));
      while (shift > 0) {
        shift -= 6;
        *value += static_cast<char>(0x80 | ((code >> shift) & 0x3F));
      }
    };
    if (code < 0x80) {
      add(0, 0);
    } else if (code < 0x800) {
      add(0xC0, 6);
    } else if (code < 0x10000) {
      add(0xE0, 12);
    } else {
      add(0xF0, 18);
    }
    return absl::OkStatus();
  }

  // Reads one word: a number, true, false or null.
  absl::string_view Word() {
    SkipBlanks();
    const size_t begin = at_;
    while (at_ < text_.size() && (absl::ascii_isalnum(text_[at_]) || text_[at_] == '-' ||
                                  text_[at_] == '+' || text_[at_] == '.')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  void SkipBlanks() {
    while (at_ < text_.size() && absl::ascii_isspace(text_[at_])) ++at_;
  }
  bool Eat(char c) {
    SkipBlanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  absl::Status Expected(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat("JSON: column ", at_ + 1, ": expected ", what));
  }

  const absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string JsonOf(const Message& message, NumberFormat format) {
  Writer writer(format);
  writer.Object(message);
  return writer.Take();
}

void PrintJson(const Message& message, NumberFormat format) {
  std::printf("%s\n", JsonOf(message, format).c_str());
  std::fflush(stdout);
}

absl::Status ParseJson(absl::string_view text, Message* message) {
  return Reader(text).All(message);
}

}  // namespace satrap
