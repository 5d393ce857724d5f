#include "common/kafka/settings.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

struct Forced {
  const char* name;
  const char* reason;
};

// Settings that a job must not name, each with the reason. ResolveKafkaSettings sets them itself,
// or leaves them unset.
constexpr Forced kForced[] = {
    {"bootstrap.servers", "name the brokers in `brokers`"},
    {"metadata.broker.list", "name the brokers in `brokers`"},
    {"group.id", "name the group in `group_id`"},
    {"group.instance.id", "partitions are dealt by the coordinator, not by a group"},
    {"partition.assignment.strategy", "partitions are dealt by the coordinator, not by a group"},
    {"isolation.level", "Satrap sets read_committed, because it trains only committed messages"},
    {"auto.offset.reset", "lost offsets are never skipped in silence: see `on_lost_offsets`"},
    {"enable.partition.eof", "Satrap sets true, because it needs to see the end of a partition"},
    {"enable.auto.commit", "Satrap sets false, because offsets follow the run's cuts"},
    {"auto.commit.enable", "Satrap sets false, because offsets follow the run's cuts"},
    {"auto.commit.interval.ms", "offsets follow the run's cuts"},
    {"enable.auto.offset.store", "Satrap sets false, because offsets follow the run's cuts"},
    {"auto.offset.store", "offsets follow the run's cuts"},
    {"queued.min.messages", "the queue is bounded in bytes: see `queue_bytes`"},
    {"queued.max.messages.kbytes", "the queue is bounded in bytes: see `queue_bytes`"},
    {"enable.idempotence", "Satrap sets true, because bad records must not be written twice"},
    {"acks", "Satrap sets all, because a dead letter must survive the loss of a broker"},
    {"request.required.acks",
     "Satrap sets all, because a dead letter must survive the loss of a broker"},
    {"transactional.id", "Satrap writes no transactions"},
    {"plugin.library.paths", "a job must not load code"},
    {"sasl.kerberos.kinit.cmd", "a job must not run commands"},
    {"ssl.engine.location", "a job must not load code"},
};

// Values that suit Satrap better than librdkafka's defaults do. A job may change them.
constexpr std::pair<const char*, const char*> kDefaults[] = {
    {"client.id", "satrap"},
    // The client reconnects within a second after a broker was unreachable.
    {"reconnect.backoff.ms", "50"},
    {"reconnect.backoff.max.ms", "500"},
    {"topic.metadata.refresh.fast.interval.ms", "100"},
    {"fetch.error.backoff.ms", "100"},
    // How long a fetch waits at the broker for new messages. Closing a client waits for the fetch,
    // so with librdkafka's default, every epoch and every change of partitions would take half a
    // second longer.
    {"fetch.wait.max.ms", "100"},
    // With this, the client notices that a firewall has dropped a connection.
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"log.connection.close", "false"},
};

const char* ForcedReason(absl::string_view name) {
  for (const Forced& forced : kForced) {
    if (name == forced.name) return forced.reason;
  }
  return nullptr;
}

bool IsSecret(absl::string_view name) {
  return absl::StrContains(name, "password") || absl::StrContains(name, "secret") ||
         name == "ssl.key.pem" || name == "sasl.oauthbearer.config";
}

bool IsReference(absl::string_view value) {
  return absl::StartsWith(value, "file:") || absl::StartsWith(value, "env:");
}

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};

// librdkafka's complaint about the setting; empty if it accepts the setting.
std::string Complaint(const std::string& name, const std::string& value) {
  const std::unique_ptr<rd_kafka_conf_t, ConfDeleter> conf(rd_kafka_conf_new());
  char text[512] = "";
  // If the value is a reference (file: or env:), only the existence of the setting can be checked
  // here.
  const bool reference = IsReference(value);
  const rd_kafka_conf_res_t result = rd_kafka_conf_set(
      conf.get(), name.c_str(), reference ? "" : value.c_str(), text, sizeof(text));
  if (result == RD_KAFKA_CONF_OK) return "";
  if (reference && result == RD_KAFKA_CONF_INVALID) return "";
  return text[0] != '\0' ? text : "librdkafka refuses it";
}

bool IsHostPort(absl::string_view broker) {
  const size_t colon = broker.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 || colon + 1 == broker.size()) return false;
  // librdkafka treats spaces as ends of names, and a zero byte as the end of the list.
  const bool is_one_word = std::all_of(broker.begin(), broker.end(), [](char c) {
    return absl::ascii_isgraph(static_cast<unsigned char>(c));
  });
  int port;
  return is_one_word && absl::SimpleAtoi(broker.substr(colon + 1), &port) && port > 0 &&
         port < 65536 && !absl::StrContains(broker, ',') && !absl::StrContains(broker, "://");
}

// Kafka's own rule for names. With a name that breaks it, librdkafka would use only the bytes
// before a zero byte, or wait for a topic that cannot exist.
void CheckTopicName(absl::string_view name, absl::string_view path, Problems* problems) {
  const bool is_legal = name.size() <= 249 && name != "." && name != ".." &&
                        std::all_of(name.begin(), name.end(), [](char c) {
                          return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                                 c == '_' || c == '-';
                        });
  if (is_legal) return;
  problems->Add(path,
                absl::StrCat("must be at most 249 letters, digits, dots, underscores and hyphens, "
                             "got \"",
                             absl::CEscape(name), "\""));
}

void CheckOffsets(const google::protobuf::RepeatedPtrField<KafkaOffset>& offsets,
                  absl::string_view path, Problems* problems) {
  for (int i = 0; i < offsets.size(); ++i) {
    const KafkaOffset& offset = offsets.Get(i);
    const std::string at = absl::StrCat(path, ".offsets[", i, "]");
    if (offset.topic().empty()) problems->Add(at + ".topic", "must not be empty");
    if (!offset.has_partition()) problems->Add(at + ".partition", "must be given");
    if (!offset.has_offset()) problems->Add(at + ".offset", "must be given");
  }
}

// Start and End have the same fields. `points` lists the names of their enum.
template <typename Place>
void CheckPlace(const Place& place, const std::string& path, const char* points,
                Problems* problems) {
  const int given = static_cast<int>(place.at() != Place::NONE) +
                    static_cast<int>(place.has_time()) + static_cast<int>(place.offsets_size() > 0);
  if (given != 1) {
    problems->Add(path, absl::StrCat("must have exactly one of `at` (", points,
                                     "), `time` and `offsets`, got ", given));
  }
  if (place.has_time()) {
    const absl::StatusOr<int64_t> time = ParseKafkaTime(place.time());
    if (!time.ok()) {
      problems->Add(path + ".time",
                    {time.status().message().data(), time.status().message().size()});
    }
  }
  CheckOffsets(place.offsets(), path, problems);
}

void CheckColumns(const KafkaConfig& config, absl::string_view path, Problems* problems) {
  for (int i = 0; i < config.columns_size(); ++i) {
    const KafkaColumn& column = config.columns(i);
    const std::string at = absl::StrCat(path, ".columns[", i, "]");
    if (column.name().empty()) problems->Add(at + ".name", "must not be empty");
    if (column.has_header() != (column.from() == KafkaColumn::HEADER)) {
      problems->Add(at + ".header", "must be given if `from` is HEADER, and only then");
    }
  }
}

}  // namespace

void CheckKafkaSettings(const KafkaConfig& config, absl::string_view path, Problems* problems) {
  if (config.brokers_size() == 0) {
    problems->Add(absl::StrCat(path, ".brokers"), "must name at least one broker as HOST:PORT");
  }
  for (int i = 0; i < config.brokers_size(); ++i) {
    if (IsHostPort(config.brokers(i))) continue;
    problems->Add(absl::StrCat(path, ".brokers[", i, "]"),
                  absl::StrCat("must be HOST:PORT, got \"", config.brokers(i), "\""));
  }
  for (int i = 0; i < config.settings_size(); ++i) {
    const KafkaSetting& setting = config.settings(i);
    const std::string at = absl::StrCat(path, ".settings[name=", setting.name(), "]");
    if (const char* reason = ForcedReason(setting.name()); reason != nullptr) {
      problems->Add(at, absl::StrCat("must not be set: ", reason));
    } else if (IsSecret(setting.name()) && !IsReference(setting.value())) {
      // The error leaves out the value, because it is a secret.
      problems->Add(
          at, "is a secret: give it as file:PATH or env:NAME, because the run's log keeps the job");
    } else if (const std::string why = Complaint(setting.name(), setting.value()); !why.empty()) {
      problems->Add(at, why);
    }
  }
}

void CheckKafkaConfig(const KafkaConfig& config, absl::string_view path, Problems* problems) {
  CheckKafkaSettings(config, path, problems);
  if (config.topics_size() == 0 && config.topic_pattern().empty()) {
    problems->Add(absl::StrCat(path, ".topics"), "must name a topic, or set topic_pattern");
  }
  for (int i = 0; i < config.topics_size(); ++i) {
    const std::string& topic = config.topics(i);
    const std::string at = absl::StrCat(path, ".topics[", i, "]");
    if (topic.empty()) problems->Add(at, "must not be empty");
    CheckTopicName(topic, at, problems);
    if (std::count(config.topics().begin(), config.topics().begin() + i, topic) > 0) {
      problems->Add(at, absl::StrCat("names ", topic, " a second time"));
    }
    if (!topic.empty() && topic == config.dead_letter_topic()) {
      problems->Add(absl::StrCat(path, ".dead_letter_topic"),
                    "must not be a topic that the job reads");
    }
  }
  CheckTopicName(config.dead_letter_topic(), absl::StrCat(path, ".dead_letter_topic"), problems);
  if (config.has_start()) {
    CheckPlace(config.start(), absl::StrCat(path, ".start"), "EARLIEST, LATEST, GROUP", problems);
  }
  if (config.has_end()) {
    CheckPlace(config.end(), absl::StrCat(path, ".end"), "NEVER, AT_START", problems);
  }
  CheckColumns(config, path, problems);
  if (config.group_id().empty())
    problems->Add(absl::StrCat(path, ".group_id"), "must not be empty");
}

absl::StatusOr<std::map<std::string, std::string>> ResolveKafkaSettings(const KafkaConfig& config,
                                                                        KafkaRole role,
                                                                        size_t partitions) {
  Problems problems;
  CheckKafkaSettings(config, "kafka", &problems);
  RETURN_IF_ERROR(problems.First());
  std::map<std::string, std::string> settings(std::begin(kDefaults), std::end(kDefaults));
  const int64_t queue_bytes = std::max<int64_t>(
      config.queue_bytes() / static_cast<int64_t>(std::max<size_t>(partitions, 1)), 64 << 10);
  if (role == KafkaRole::kReader) {
    // A queue that is almost full can still receive one whole fetch answer. Therefore fetch answers
    // are kept small.
    settings["fetch.message.max.bytes"] =
        absl::StrCat(std::clamp<int64_t>(queue_bytes / 2, 64 << 10, 1 << 20));
  }
  if (role == KafkaRole::kProducer) {
    settings["message.timeout.ms"] = absl::StrCat(
        static_cast<int64_t>(std::clamp(config.broker_wait_seconds() * 1000, 1.0, 2147483647.0)));
  }
  for (const KafkaSetting& setting : config.settings()) {
    absl::StatusOr<std::string> value = ResolveKafkaValue(setting.value());
    if (!value.ok()) {
      return absl::Status(
          value.status().code(),
          absl::StrCat("setting ", setting.name(), " of Kafka: ", value.status().message()));
    }
    // Some settings have two names. The job's value must win, but the default, under the other
    // name, may come later in the map. So the default is removed.
    if (setting.name() == "max.partition.fetch.bytes") settings.erase("fetch.message.max.bytes");
    if (setting.name() == "delivery.timeout.ms") settings.erase("message.timeout.ms");
    settings[setting.name()] = *std::move(value);
  }
  settings["bootstrap.servers"] = absl::StrJoin(config.brokers(), ",");
  if (role == KafkaRole::kReader) {
    settings["group.id"] = config.group_id();
    settings["isolation.level"] = "read_committed";
    settings["auto.offset.reset"] = "error";
    settings["enable.partition.eof"] = "true";
    settings["enable.auto.commit"] = "false";
    settings["enable.auto.offset.store"] = "false";
    // Only the bytes limit the queue, never the number of messages, because messages may be short.
    settings["queued.min.messages"] = "10000000";
    settings["queued.max.messages.kbytes"] = absl::StrCat(queue_bytes >> 10);
  } else if (role == KafkaRole::kProducer) {
    settings["enable.idempotence"] = "true";
    settings["acks"] = "all";
  }
  return settings;
}

absl::StatusOr<std::string> ResolveKafkaValue(absl::string_view value) {
  if (absl::ConsumePrefix(&value, "file:")) {
    const std::string path(value);
    std::ifstream file(path, std::ios::binary);
    if (!file) return FileError("read", path, errno != 0 ? errno : EIO);
    std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (file.bad()) return FileError("read", path, EIO);
    if (absl::EndsWith(content, "\n")) content.pop_back();
    if (absl::EndsWith(content, "\r")) content.pop_back();
    return content;
  }
  if (absl::ConsumePrefix(&value, "env:")) {
    // The job names the variable, and no other code reads the environment. This file holds the
    // environment with which the process started, as entries separated by NUL.
    std::ifstream file("/proc/self/environ", std::ios::binary);
    std::string entry;
    while (std::getline(file, entry, '\0')) {
      absl::string_view rest = entry;
      if (absl::ConsumePrefix(&rest, value) && absl::ConsumePrefix(&rest, "=")) {
        return std::string(rest);
      }
    }
    return absl::NotFoundError(absl::StrCat("the environment variable ", value, " is not set"));
  }
  return std::string(value);
}

absl::StatusOr<int64_t> ParseKafkaTime(absl::string_view text) {
  absl::Time time;
  std::string why;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &why)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text.substr(0, 64), "\" is not a time such as 2026-05-01T00:00:00Z: ", why));
  }
  return absl::ToUnixMillis(time);
}

}  // namespace satrap
