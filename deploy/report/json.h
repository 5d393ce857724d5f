// Writes one JSON value. Objects keep the order in which fields are written; a double that JSON
// cannot express (NaN, infinite) becomes null.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Field("samples", uint64_t{7});
//   json.Key("test");
//   json.BeginObject();
//   json.Field("auc", 0.75);
//   json.EndObject();
//   json.EndObject();
//   json.text();  // {"samples":7,"test":{"auc":0.75}}
//
// The caller must balance Begin and End, and write a key before each value inside an object.
// Not thread-safe.

#ifndef SATRAP_DEPLOY_REPORT_JSON_H_
#define SATRAP_DEPLOY_REPORT_JSON_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(absl::string_view key);

  // Bytes that are not valid UTF-8 are written unchanged.
  void String(absl::string_view value);
  // The shortest decimal that reads back as the same double.
  void Number(double value);
  void Number(int64_t value);
  void Number(uint64_t value);
  void Bool(bool value);

  template <typename T>
  void Field(absl::string_view key, T value) {
    Key(key);
    Number(value);
  }
  void StringField(absl::string_view key, absl::string_view value) {
    Key(key);
    String(value);
  }
  void BoolField(absl::string_view key, bool value) {
    Key(key);
    Bool(value);
  }

  const std::string& text() const { return text_; }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void BeforeValue();

  std::string text_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_REPORT_JSON_H_
