#include "deploy/submit/kubectl/yaml.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace satrap {
namespace {

constexpr int kStep = 2;  // blanks of one level

// Words that at least one version of YAML reads as a boolean or as null.
constexpr absl::string_view kWords[] = {"true", "false", "yes", "no",  "on",
                                        "off",  "y",     "n",   "null"};

// Whether the text may stand without quotes.
bool IsPlain(const std::string& text) {
  if (text.empty() || !(absl::ascii_isalpha(text[0]) || text[0] == '/')) return false;
  const bool is_word =
      std::any_of(std::begin(kWords), std::end(kWords),
                  [&](absl::string_view word) { return absl::EqualsIgnoreCase(word, text); });
  return !is_word && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
  });
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      absl::StrAppendFormat(&quoted, "\\x%02x", static_cast<unsigned>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

// Whether the text can be written as it is, line by line: it has lines, ends with exactly one line
// feed, and its first line says where the indent ends.
bool IsBlock(const std::string& text) {
  return text.size() > 1 && text.back() == '\n' && text[text.size() - 2] != '\n' &&
         text[0] != ' ' && text[0] != '\n' && std::all_of(text.begin(), text.end(), [](char c) {
           return c == '\n' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
         });
}

std::string KeyText(const std::string& key) { return IsPlain(key) ? key : Quoted(key); }

}  // namespace

std::string Yaml::Text() const {
  std::string text;
  AppendTo(-kStep, /*in_list=*/false, &text);
  return text.substr(1);  // without what separates it from a key
}

void Yaml::AppendTo(int indent, bool in_list, std::string* text) const {
  const std::string blanks(static_cast<size_t>(indent + kStep), ' ');
  if (const auto* map = std::get_if<Map>(&value_); map != nullptr && !map->empty()) {
    // The first key of an element is in the line of its dash.
    bool beside = in_list;
    if (!in_list) absl::StrAppend(text, "\n");
    for (const auto& [key, value] : *map) {
      absl::StrAppend(text, beside ? " " : blanks, KeyText(key), ":");
      beside = false;
      value.AppendTo(indent + kStep, /*in_list=*/false, text);
    }
  } else if (const auto* list = std::get_if<List>(&value_); list != nullptr && !list->empty()) {
    absl::StrAppend(text, "\n");
    for (const Yaml& value : *list) {
      absl::StrAppend(text, blanks, "-");
      value.AppendTo(indent + kStep, /*in_list=*/true, text);
    }
  } else if (const auto* words = std::get_if<std::string>(&value_); words == nullptr) {
    const auto* number = std::get_if<int64_t>(&value_);
    const auto* truth = std::get_if<bool>(&value_);
    absl::StrAppend(text, " ",
                    number != nullptr  ? absl::StrCat(*number)
                    : truth != nullptr ? (*truth ? "true" : "false")
                    : map != nullptr   ? "{}"
                                       : "[]",
                    "\n");
  } else if (IsBlock(*words)) {
    absl::StrAppend(text, " |\n");
    for (const absl::string_view line :
         absl::StrSplit(absl::string_view(*words).substr(0, words->size() - 1), '\n')) {
      absl::StrAppend(text, line.empty() ? "" : blanks, line, "\n");
    }
  } else {
    absl::StrAppend(text, " ", IsPlain(*words) ? *words : Quoted(*words), "\n");
  }
}

}  // namespace satrap
