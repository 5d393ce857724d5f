#include "common/kafka/client.h"

#include <map>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

// librdkafka takes ownership of a configuration only if it makes a client from it.
struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};

constexpr int64_t kDestroyMs = 5000;

// Removes the end of a text such as "sasl_plaintext://b1:9093/bootstrap: SASL authentication error:
// ... (after 3ms in state ...)", because the time that it took helps nobody.
std::string Shortened(absl::string_view reason) {
  const size_t at = reason.find(" (after ");
  return std::string(reason.substr(0, at));
}

}  // namespace

ConnectionTrouble::Last ConnectionTrouble::last() const {
  MutexLock lock(&mutex_);
  return last_;
}

void ConnectionTrouble::NoteError(rd_kafka_resp_err_t code, absl::string_view reason) {
  MutexLock lock(&mutex_);
  // The error that gives the reason comes first. "All brokers are down" follows it, and must not
  // replace it.
  if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && last_.code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return;
  }
  const bool hopeless = !answered_ && (code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
                                       code == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
                                       code == RD_KAFKA_RESP_ERR__SSL);
  if (last_.hopeless && !hopeless) return;
  last_ = {code, Shortened(reason), hopeless};
}

void ConnectionTrouble::NoteAnswer() {
  MutexLock lock(&mutex_);
  answered_ = true;
  if (last_.code != RD_KAFKA_RESP_ERR_NO_ERROR) last_ = Last();
}

KafkaClient::KafkaClient(const KafkaConfig& config, Options options)
    : state_(std::make_shared<State>()), brokers_(absl::StrJoin(config.brokers(), ",")) {
  state_->options = std::move(options);
}

absl::StatusOr<std::unique_ptr<KafkaClient>> KafkaClient::Create(const KafkaConfig& config,
                                                                 Options options) {
  ASSIGN_OR_RETURN(const auto settings,
                   ResolveKafkaSettings(config, options.role, options.partitions));
  std::unique_ptr<KafkaClient> self(new KafkaClient(config, std::move(options)));
  std::unique_ptr<rd_kafka_conf_t, ConfDeleter> conf(rd_kafka_conf_new());
  char text[512] = "";
  for (const auto& [name, value] : settings) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), text, sizeof(text)) !=
        RD_KAFKA_CONF_OK) {
      // The error has only the setting's name: librdkafka's text may contain the value, which may
      // be a secret from a file.
      return absl::InvalidArgumentError(
          absl::StrCat("setting ", name, " of Kafka has a value that librdkafka refuses"));
    }
  }
  rd_kafka_conf_set_opaque(conf.get(), self->state_.get());
  rd_kafka_conf_set_error_cb(conf.get(), &KafkaClient::OnError);
  rd_kafka_conf_set_log_cb(conf.get(), &KafkaClient::OnLog);
  const Options& chosen = self->state_->options;
  if (chosen.on_delivery) {
    rd_kafka_conf_set_dr_msg_cb(conf.get(), &KafkaClient::OnDelivery);
  }
  const auto type = chosen.role == KafkaRole::kReader ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER;
  self->client_ = rd_kafka_new(type, conf.get(), text, sizeof(text));
  if (self->client_ == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot create a Kafka client from the job's settings: ", text));
  }
  (void)conf.release();
  return self;
}

KafkaClient::~KafkaClient() {
  if (client_ == nullptr) return;
  // Destroys the client on another thread. This destructor waits for that thread for a limited time
  // and then abandons it, so the thread keeps alive the state that callbacks use.
  struct Done {
    Mutex mutex;
    CondVar changed;
    bool done GUARDED_BY(mutex) = false;
  };
  const auto end = std::make_shared<Done>();
  std::thread([client = client_, state = state_, end] {
    // Partitions are assigned by hand, so no group has to be left, and no wait is needed.
    rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    MutexLock lock(&end->mutex);
    end->done = true;
    end->changed.NotifyAll();
  }).detach();
  const int64_t deadline_ms = MonotonicMs() + kDestroyMs;
  MutexLock lock(&end->mutex);
  for (;;) {
    const int64_t left_ms = deadline_ms - MonotonicMs();
    if (end->done || left_ms <= 0) return;
    end->changed.WaitFor(&end->mutex, left_ms);
  }
}

void KafkaClient::OnError(rd_kafka_t* client, int code, const char* reason, void* state) {
  auto* const me = static_cast<State*>(state);
  auto error = static_cast<rd_kafka_resp_err_t>(code);
  std::string text = reason;
  if (error == RD_KAFKA_RESP_ERR__FATAL) {
    char fatal[512] = "";
    error = rd_kafka_fatal_error(client, fatal, sizeof(fatal));
    text = fatal;
  }
  me->trouble.NoteError(error, text);
}

void KafkaClient::OnLog(const rd_kafka_t* client, int level, const char* facility,
                        const char* text) {
  const auto* const me = static_cast<const State*>(rd_kafka_opaque(client));
  if (me == nullptr) return;
  me->options.logger.Debug("librdkafka",
                           {{"level", level}, {"facility", facility}, {"text", text}});
}

void KafkaClient::OnDelivery(rd_kafka_t*, const rd_kafka_message_t* message, void* state) {
  static_cast<State*>(state)->options.on_delivery(*message);
}

absl::Status KafkaClient::Unreachable(absl::string_view within) const {
  const ConnectionTrouble::Last why = trouble();
  if (why.hopeless && why.code == RD_KAFKA_RESP_ERR__SSL) {
    return absl::PermissionDeniedError(absl::StrCat(
        "TLS with the Kafka broker failed: ", why.reason,
        "; check security.protocol, ssl.ca.location and the name in the broker's certificate"));
  }
  if (why.hopeless) {
    return absl::PermissionDeniedError(
        absl::StrCat("the Kafka broker refused the login: ", why.reason,
                     "; check security.protocol and the sasl.* settings"));
  }
  const std::string reason = why.reason.empty() ? "" : absl::StrCat(" (", why.reason, ")");
  return absl::UnavailableError(
      absl::StrCat("no Kafka broker of ", brokers_, " has answered ", within, reason,
                   "; check that it runs, its address in `brokers`, and security.protocol"));
}

absl::Status KafkaClient::Failed(absl::string_view doing, rd_kafka_resp_err_t code,
                                 absl::string_view text) const {
  rd_kafka_poll(client_, 0);
  const absl::Status status = KafkaError(doing, code, text);
  const ConnectionTrouble::Last why = trouble();
  if (!absl::IsUnavailable(status) || why.reason.empty()) return status;
  // Clients connect to the names that the cluster states. The brokers in the job are only asked for
  // these names.
  const char* const hint =
      why.code == RD_KAFKA_RESP_ERR__RESOLVE
          ? "; clients get such names from the brokers (advertised.listeners), and they must "
            "resolve on this machine"
          : "";
  return absl::UnavailableError(absl::StrCat(status.message(), " (", why.reason, ")", hint));
}

TopicPartitions::TopicPartitions(size_t size)
    : list_(rd_kafka_topic_partition_list_new(static_cast<int>(size))) {}

void TopicPartitions::Add(const KafkaPartition& partition, int64_t offset) {
  rd_kafka_topic_partition_list_add(list_, partition.topic.c_str(), partition.partition)->offset =
      offset;
}

absl::Status KafkaError(absl::string_view doing, rd_kafka_resp_err_t code, absl::string_view text) {
  CHECK(code != RD_KAFKA_RESP_ERR_NO_ERROR) << doing;
  const std::string message =
      absl::StrCat(doing, ": ", text.empty() ? rd_kafka_err2str(code) : text);
  switch (code) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
      return absl::UnavailableError(message);
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      return absl::NotFoundError(message);
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return absl::PermissionDeniedError(message);
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      return absl::OutOfRangeError(message);
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
      return absl::AlreadyExistsError(message);
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
      return absl::InvalidArgumentError(message);
    case RD_KAFKA_RESP_ERR__BAD_MSG:
    case RD_KAFKA_RESP_ERR__BAD_COMPRESSION:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
      return absl::DataLossError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace satrap
