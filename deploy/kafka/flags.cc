#include "deploy/kafka/flags.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/near_match.h"
#include "common/base/problems.h"
#include "common/base/status_macros.h"
#include "common/kafka/settings.h"

namespace satrap {

std::string KafkaFlags::Get(const std::string& name, const std::string& otherwise) const {
  const auto at = values.find(name);
  return at == values.end() ? otherwise : at->second;
}

absl::StatusOr<double> KafkaFlags::Number(const std::string& name, double otherwise, double low,
                                          double high) const {
  const auto at = values.find(name);
  if (at == values.end()) return otherwise;
  double value;
  if (absl::SimpleAtod(at->second, &value) && value >= low && value <= high) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name, " must be a number in [", low, ", ", high, "], got ", at->second));
}

absl::StatusOr<KafkaFlags> ParseKafkaFlags(const std::vector<std::string>& args,
                                           std::vector<std::string> names) {
  names.insert(names.end(), {"setting", "brokers"});
  KafkaFlags flags;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--help") {
      flags.help = true;
      continue;
    }
    if (!absl::StartsWith(args[i], "--")) {
      flags.arguments.push_back(args[i]);
      continue;
    }
    const size_t equals = args[i].find('=');
    const std::string name = args[i].substr(2, equals == std::string::npos ? equals : equals - 2);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag --", name, DidYouMean(name, names, "--")));
    }
    std::string value;
    if (equals != std::string::npos) {
      value = args[i].substr(equals + 1);
    } else if (i + 1 < args.size()) {
      value = args[++i];
    } else {
      return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
    }
    if (name == "setting") {
      flags.settings.push_back(std::move(value));
    } else {
      flags.values[name] = std::move(value);
    }
  }
  return flags;
}

absl::StatusOr<KafkaConfig> KafkaConfigOf(const KafkaFlags& flags) {
  KafkaConfig config;
  const std::string brokers = flags.Get("brokers");
  if (brokers.empty()) {
    return absl::InvalidArgumentError("--brokers HOST:PORT[,HOST:PORT...] is missing");
  }
  for (const absl::string_view broker : absl::StrSplit(brokers, ',')) {
    config.add_brokers(std::string(broker));
  }
  for (const std::string& text : flags.settings) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("--setting must be NAME=VALUE, got ", text));
    }
    KafkaSetting* const setting = config.add_settings();
    setting->set_name(text.substr(0, equals));
    setting->set_value(text.substr(equals + 1));
  }
  Problems problems;
  CheckKafkaSettings(config, "kafka", &problems);
  RETURN_IF_ERROR(problems.First());
  return config;
}

absl::StatusOr<std::string> TopicOf(const KafkaFlags& flags) {
  const std::string topic = flags.Get("topic");
  if (topic.empty()) return absl::InvalidArgumentError("--topic is missing");
  return topic;
}

int ExitWith(const absl::Status& status, int code) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return code;
}

}  // namespace satrap
