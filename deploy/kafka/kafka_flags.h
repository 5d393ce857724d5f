// The flags that the Kafka commands share, and their exit codes.
//
// Thread-compatible.

#ifndef SATRAP_DEPLOY_KAFKA_KAFKA_FLAGS_H_
#define SATRAP_DEPLOY_KAFKA_KAFKA_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/flags/flags.h"
#include "proto/kafka.pb.h"

namespace satrap {

struct ClusterFlags {
  std::string brokers;                // HOST:PORT,...
  std::vector<std::string> settings;  // NAME=VALUE, in order
  std::vector<Flag> Table();
  // INVALID_ARGUMENT says in one line what is wrong.
  absl::StatusOr<KafkaConfig> Config() const;
};

// Returns the exit code of the process: 0 if `status` is OK; otherwise prints the error and returns
// `code`.
int ExitWith(const absl::Status& status, int code);

inline constexpr int kWrongArguments = kExitWrongCommandLine;
inline constexpr int kFailed = 1;

}  // namespace satrap

#endif  // SATRAP_DEPLOY_KAFKA_KAFKA_FLAGS_H_
