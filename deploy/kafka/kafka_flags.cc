#include "deploy/kafka/kafka_flags.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/problems.h"
#include "common/base/status_macros.h"
#include "common/kafka/settings.h"

namespace satrap {

std::vector<Flag> ClusterFlags::Table() {
  return {
      Required(TextFlag("brokers", "HOST:PORT[,HOST:PORT...]", "where the cluster is", &brokers)),
      TextsFlag("setting", "NAME=VALUE",
                "a setting of librdkafka; for a secret: NAME=file:PATH or NAME=env:NAME",
                &settings),
  };
}

absl::StatusOr<KafkaConfig> ClusterFlags::Config() const {
  KafkaConfig config;
  for (const absl::string_view broker : absl::StrSplit(brokers, ',')) {
    config.add_brokers(std::string(broker));
  }
  for (const std::string& text : settings) {
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

int ExitWith(const absl::Status& status, int code) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return code;
}

}  // namespace satrap
