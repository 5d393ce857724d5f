// Asks the brokers for offsets of topic partitions. Only files of this folder include this header;
// the folder's other headers hide librdkafka.
//
// Thread-safe: a function of its arguments. It blocks for as long as its comment says.

#ifndef SATRAP_COMMON_KAFKA_PARTITION_OFFSETS_H_
#define SATRAP_COMMON_KAFKA_PARTITION_OFFSETS_H_

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "common/kafka/client.h"
#include "common/kafka/partition.h"

namespace satrap {

struct PartitionOffset {
  int64_t offset = -1;
  // The broker's error, or the reason why there is no answer. Without an error the offset is known.
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
};

// Asks for RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END of each partition. If one broker does
// not answer, librdkafka gives no answers at all. Then the partitions of each broker are asked for
// separately, so that a broker that is down or refuses affects only its own partitions. Takes at
// most kPartitionQueryMs if all brokers answer; otherwise three times as long, and once more
// kPartitionQueryMs for each broker that does not answer. Returns after the query in progress when
// `stop` returns true.
constexpr int kPartitionQueryMs = 1000;
std::vector<PartitionOffset> AskOffsets(KafkaClient* client,
                                        const std::vector<KafkaPartition>& partitions,
                                        int64_t which, const std::function<bool()>& stop);

}  // namespace satrap

#endif  // SATRAP_COMMON_KAFKA_PARTITION_OFFSETS_H_
