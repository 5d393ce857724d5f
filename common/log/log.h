// A Logger writes lines of text with fields, for people and for grep:
//
//   logger.Info("part accepted", {{"lane", 2}, {"samples", 4096}});
//   2026-05-01T09:30:00.123Z info    embedding_worker/0 part accepted lane=2 samples=4096
//
// A Logger is a handle: copies write to the same place, so pass it by value. A default-constructed
// Logger writes nothing. Values with spaces, quotes or line breaks are quoted.
//
// Thread-safe. Lines are written unbuffered and whole, in the same order to stderr and the file.

#ifndef SATRAP_COMMON_LOG_LOG_H_
#define SATRAP_COMMON_LOG_LOG_H_

#include <concepts>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace spdlog {
class logger;
}

namespace satrap {

// One key=value. Refers to the caller's `key`, so it must not outlive the call that logs it.
struct LogField {
  // `value` is anything that absl::StrCat takes.
  LogField(absl::string_view key, const absl::AlphaNum& value)
      : key(key), value(value.Piece().data(), value.Piece().size()) {}
  LogField(absl::string_view key, std::same_as<bool> auto value)
      : key(key), value(value ? "true" : "false") {}

  absl::string_view key;
  std::string value;
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

class Logger {
 public:
  using Fields = std::initializer_list<LogField>;

  Logger() = default;

  // A logger for `replica` ("embedding_ps/0"). It writes lines of `level` and above to stderr and,
  // unless `file` is empty, to the end of that file. UNAVAILABLE if the file cannot be opened.
  static absl::StatusOr<Logger> Create(const std::string& replica, LogLevel level,
                                       const std::string& file);

  void Debug(absl::string_view text, Fields fields = {}) const {
    Write(LogLevel::kDebug, text, fields);
  }
  void Info(absl::string_view text, Fields fields = {}) const {
    Write(LogLevel::kInfo, text, fields);
  }
  void Warning(absl::string_view text, Fields fields = {}) const {
    Write(LogLevel::kWarning, text, fields);
  }
  void Error(absl::string_view text, Fields fields = {}) const {
    Write(LogLevel::kError, text, fields);
  }

 private:
  void Write(LogLevel level, absl::string_view text, absl::Span<const LogField> fields) const;

  std::shared_ptr<spdlog::logger> sinks_;  // null: nothing is written
};

}  // namespace satrap

#endif  // SATRAP_COMMON_LOG_LOG_H_
