// A producer of transactions. Tests use it to check what a reader of committed messages sees.
//
// Not thread-safe. Every failure ends the test.

#ifndef SATRAP_TESTS_KAFKA_TRANSACTIONS_H_
#define SATRAP_TESTS_KAFKA_TRANSACTIONS_H_

#include <librdkafka/rdkafka.h>

#include <string>

#include "common/base/check.h"
#include "common/kafka/partition.h"

namespace satrap {

class TransactionalProducer {
 public:
  TransactionalProducer(const std::string& brokers, const std::string& id) {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    char text[256];
    CHECK(rd_kafka_conf_set(conf, "bootstrap.servers", brokers.c_str(), text, sizeof(text)) ==
          RD_KAFKA_CONF_OK)
        << text;
    CHECK(rd_kafka_conf_set(conf, "transactional.id", id.c_str(), text, sizeof(text)) ==
          RD_KAFKA_CONF_OK)
        << text;
    // A test may leave a transaction open while a run trains. The broker does not abort it before
    // this time has passed.
    CHECK(rd_kafka_conf_set(conf, "transaction.timeout.ms", kOpenMs, text, sizeof(text)) ==
          RD_KAFKA_CONF_OK)
        << text;
    client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    CHECK(client_ != nullptr) << text;
    Check(rd_kafka_init_transactions(client_, kLimitMs));
  }
  ~TransactionalProducer() { rd_kafka_destroy(client_); }
  TransactionalProducer(const TransactionalProducer&) = delete;
  TransactionalProducer& operator=(const TransactionalProducer&) = delete;

  void Begin() { Check(rd_kafka_begin_transaction(client_)); }
  void Send(const KafkaPartition& to, const std::string& value) {
    const rd_kafka_resp_err_t error = rd_kafka_producev(
        client_, RD_KAFKA_V_TOPIC(to.topic.c_str()), RD_KAFKA_V_PARTITION(to.partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()), RD_KAFKA_V_END);
    CHECK(error == RD_KAFKA_RESP_ERR_NO_ERROR) << rd_kafka_err2str(error);
  }
  // Waits until the broker has all messages that were sent, whether or not they will be committed.
  void Flush() {
    CHECK(rd_kafka_flush(client_, kLimitMs) == RD_KAFKA_RESP_ERR_NO_ERROR) << "flush";
  }
  void Commit() { Check(rd_kafka_commit_transaction(client_, kLimitMs)); }
  void Abort() {
    // Flushes first. Otherwise messages that are still in the queue would be dropped, and would
    // leave no gap in the offsets.
    Flush();
    Check(rd_kafka_abort_transaction(client_, kLimitMs));
  }

 private:
  static constexpr int kLimitMs = 60000;
  static constexpr char kOpenMs[] = "600000";
  static void Check(rd_kafka_error_t* error) {
    CHECK(error == nullptr) << rd_kafka_error_string(error);
  }

  rd_kafka_t* client_;
};

}  // namespace satrap

#endif  // SATRAP_TESTS_KAFKA_TRANSACTIONS_H_
