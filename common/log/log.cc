#include "common/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"

namespace satrap {
namespace {

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

// Quotes a value that would make "key=value" ambiguous, so that a line can be split into its
// fields.
void AppendValue(absl::string_view value, std::string* line) {
  const bool plain = !value.empty() && value.find_first_of(" \t\r\n\"=\\") == value.npos;
  if (plain) {
    absl::StrAppend(line, value);
  } else {
    absl::StrAppend(line, "\"", absl::Utf8SafeCEscape(value), "\"");
  }
}

}  // namespace

absl::StatusOr<Logger> Logger::Create(const std::string& replica, LogLevel level,
                                      const std::string& file) {
  std::vector<spdlog::sink_ptr> sinks = {std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  // The library throws if it cannot open the file; it has no other way to report that.
  try {
    if (!file.empty()) sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(file));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("cannot write the log: ", error.what()));
  }
  Logger logger;
  logger.sinks_ = std::make_shared<spdlog::logger>(replica, sinks.begin(), sinks.end());
  logger.sinks_->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      "%Y-%m-%dT%H:%M:%S.%eZ %-7l %n %v", spdlog::pattern_time_type::utc));
  logger.sinks_->set_level(SpdlogLevel(level));
  // Every line is flushed, because a process may end by _exit or a signal right after it.
  logger.sinks_->flush_on(spdlog::level::trace);
  return logger;
}

void Logger::Write(LogLevel level, absl::string_view text,
                   absl::Span<const LogField> fields) const {
  if (sinks_ == nullptr || !sinks_->should_log(SpdlogLevel(level))) return;
  std::string line(text);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=");
    AppendValue(field.value, &line);
  }
  sinks_->log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace satrap
