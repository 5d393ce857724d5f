// Writes the synthetic click log to a Kafka topic as Records (proto/record.proto), for demos and
// measurements: `satrap produce --synthetic`.
//
// Thread-safe: a function of its arguments. It blocks until everything is acknowledged.

#ifndef SATRAP_DATA_LOADER_KAFKA_PRODUCE_SYNTHETIC_H_
#define SATRAP_DATA_LOADER_KAFKA_PRODUCE_SYNTHETIC_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"
#include "proto/kafka.pb.h"

namespace satrap {

struct SyntheticProduceOptions {
  KafkaConfig kafka;  // brokers and settings
  std::string topic;  // must exist
  SyntheticFormat format;
  Stream stream = TRAIN_STREAM;
  uint64_t records = 0;           // 0: until `show` returns false
  double records_per_second = 0;  // 0: as fast as the broker takes them
};

// The number of records in a partition after `records` records are written. Record i goes to
// partition i mod `partitions`, so the end of each partition is known before it is written.
uint64_t RecordsOfPartition(uint64_t records, int32_t partition, int32_t partitions);

// The number of records to write between two calls of `show`, each with a check of the rate. It is
// chosen for 20 checks a second, and then limited to [1, 64]. There is no check at each record,
// because reading the clock costs time.
uint64_t RecordsPerLook(double records_per_second);

// Writes records 0, 1, ... of the stream. `show` is called often, on this thread, with the number
// of records so far; if it returns false, no more records are made, but those already made are
// flushed.
absl::Status ProduceSynthetic(const SyntheticProduceOptions& options,
                              const std::function<bool(uint64_t)>& show);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_PRODUCE_SYNTHETIC_H_
