// The flags of the Kafka commands: `--name value` or `--name=value`, anywhere among the arguments.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_KAFKA_FLAGS_H_
#define SATRAP_DEPLOY_KAFKA_FLAGS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/kafka.pb.h"

namespace satrap {

struct KafkaFlags {
  std::vector<std::string> arguments;         // arguments that are no flags, in order
  std::map<std::string, std::string> values;  // the last value of each flag, by name
  std::vector<std::string> settings;          // --setting NAME=VALUE, in order
  bool help = false;                          // --help

  // The value of a flag, or `otherwise`.
  std::string Get(const std::string& name, const std::string& otherwise = "") const;
  // INVALID_ARGUMENT if the flag's value is no number in [low, high].
  absl::StatusOr<double> Number(const std::string& name, double otherwise, double low,
                                double high) const;
};

// `names` are the flags that exist besides --setting, --brokers and --help. INVALID_ARGUMENT names
// a flag that does not exist, and the nearest one that does, or a flag without its value.
absl::StatusOr<KafkaFlags> ParseKafkaFlags(const std::vector<std::string>& args,
                                           std::vector<std::string> names);

// Brokers (--brokers HOST:PORT,...) and settings. INVALID_ARGUMENT says in one line what is wrong.
absl::StatusOr<KafkaConfig> KafkaConfigOf(const KafkaFlags& flags);

// The topic of --topic. INVALID_ARGUMENT if it is missing.
absl::StatusOr<std::string> TopicOf(const KafkaFlags& flags);

// The exit code of the process: 0 if `status` is OK; otherwise prints it and returns `code`.
int ExitWith(const absl::Status& status, int code);

inline constexpr int kWrongArguments = 2;
inline constexpr int kFailed = 1;

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_FLAGS_H_
