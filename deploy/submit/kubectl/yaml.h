// A value of a Kubernetes manifest, and its text in YAML. Maps keep the order of their keys, so
// that the same value has the same text in every build.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_SUBMIT_KUBECTL_YAML_H_
#define SATRAP_DEPLOY_SUBMIT_KUBECTL_YAML_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace satrap {

// A text, a whole number, true or false, a list, or a map.
class Yaml {
 public:
  using List = std::vector<Yaml>;
  using Map = std::vector<std::pair<std::string, Yaml>>;

  // NOLINTBEGIN(google-explicit-constructor): a value is written as it is, as in JSON.
  Yaml(const char* text) : value_(std::string(text)) {}
  Yaml(std::string text) : value_(std::move(text)) {}
  Yaml(absl::string_view text) : value_(std::string(text)) {}
  Yaml(int64_t number) : value_(number) {}
  Yaml(int number) : value_(int64_t{number}) {}
  Yaml(bool value) : value_(value) {}
  Yaml(List list) : value_(std::move(list)) {}
  Yaml(Map map) : value_(std::move(map)) {}
  // NOLINTEND(google-explicit-constructor)

  // The value in YAML, with a line feed at its end. A string that YAML would read as something else
  // is quoted.
  std::string Text() const;

 private:
  // Appends the value after "KEY:" or "-", whose line has `indent` blanks before it.
  void AppendTo(int indent, bool in_list, std::string* text) const;

  std::variant<std::string, int64_t, bool, List, Map> value_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_SUBMIT_KUBECTL_YAML_H_
