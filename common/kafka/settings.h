// The settings of librdkafka for a job's KafkaConfig. The job's own settings override Satrap's
// defaults. There are settings that a job must not name, mostly because reading each message
// exactly once depends on the values that Satrap gives them. The error says why.
//
// Secrets (passwords, private keys) are refused as plain values, because the run's log keeps the
// job. They are given as `file:PATH` or `env:NAME` and resolved when a client is made.
//
// Thread-safe: the functions depend only on their arguments, on files and on the process's
// environment.

#ifndef SATRAP_COMMON_KAFKA_SETTINGS_H_
#define SATRAP_COMMON_KAFKA_SETTINGS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/problems.h"
#include "proto/kafka.pb.h"

namespace satrap {

enum class KafkaRole {
  kReader,    // reads partitions
  kProducer,  // writes messages, each once in its partition
  kAdmin,     // asks the cluster, and changes topics
};

// Adds the problems of brokers, topics, start, end, columns and settings, each with its path below
// `path` ("data.kafka"). Reads no secret and asks no broker. The validator of jobs checks the
// ranges of numbers.
void CheckKafkaConfig(const KafkaConfig& config, absl::string_view path, Problems* problems);

// Checks only brokers and settings, because tools need nothing else.
void CheckKafkaSettings(const KafkaConfig& config, absl::string_view path, Problems* problems);

// Name and value of every setting of a client in this role. A reader's queue settings are for
// `partitions` partitions, which share queue_bytes. INVALID_ARGUMENT with the first problem that
// CheckKafkaSettings finds; NOT_FOUND for a variable that is not set; or the error of a file that
// cannot be read. No message contains a secret.
absl::StatusOr<std::map<std::string, std::string>> ResolveKafkaSettings(const KafkaConfig& config,
                                                                        KafkaRole role,
                                                                        size_t partitions = 1);

// The value that a setting refers to: the content of `file:PATH` without its final line end, the
// variable `env:NAME` of the environment with which the process was started, or the value itself.
absl::StatusOr<std::string> ResolveKafkaValue(absl::string_view value);

// Parses a time in RFC 3339 format to milliseconds since 1970. INVALID_ARGUMENT names the text.
absl::StatusOr<int64_t> ParseKafkaTime(absl::string_view text);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_SETTINGS_H_
