#include "data_loader/kafka/produce_synthetic.h"

#include <algorithm>
#include <memory>

#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/kafka/producer.h"
#include "data_loader/kafka/message_maker.h"
#include "data_loader/kafka/produce.h"
#include "data_loader/kafka/send_pace.h"
#include "data_loader/parser/record_block.h"
#include "data_loader/synthetic/click_log.h"
#include "proto/record.pb.h"

namespace satrap {
namespace {

constexpr uint64_t kMostRecordsPerLook = 64;
constexpr double kLooksPerSecond = 20;

}  // namespace

uint64_t RecordsOfPartition(uint64_t records, int32_t partition, int32_t partitions) {
  const auto count = static_cast<uint64_t>(partitions);
  return records / count + (static_cast<uint64_t>(partition) < records % count ? 1 : 0);
}

uint64_t RecordsPerLook(double records_per_second) {
  if (records_per_second <= 0) return kMostRecordsPerLook;
  const double records = records_per_second / kLooksPerSecond;
  if (records >= static_cast<double>(kMostRecordsPerLook)) return kMostRecordsPerLook;
  return std::max<uint64_t>(static_cast<uint64_t>(records), 1);
}

absl::Status ProduceSynthetic(const SyntheticProduceOptions& options,
                              const std::function<bool(uint64_t)>& show) {
  ASSIGN_OR_RETURN(const size_t partitions, FindTopic(options.kafka, options.topic));
  ASSIGN_OR_RETURN(const auto producer, KafkaProducer::Create(options.kafka));
  const ClickLog log(options.format);
  DataConfig data;
  *data.mutable_synthetic() = options.format;
  const RecordSchema schema = SchemaOf(data);
  RecordBlock block(schema);
  Record record;
  std::string bytes;
  const uint64_t records_per_look = RecordsPerLook(options.records_per_second);
  const SendPace pace(options.records_per_second);
  for (uint64_t i = 0; options.records == 0 || i < options.records; ++i) {
    if (i % records_per_look == 0) {
      if (!show(i)) break;
      pace.WaitFor(i);
    }
    block.Clear();
    log.Append(options.stream, i, &block);
    RecordOfRow(schema, block, 0, &record);
    record.SerializeToString(&bytes);
    KafkaProducer::Message message;
    message.topic = options.topic;
    message.partition = static_cast<int32_t>(i % partitions);
    message.value = bytes;
    RETURN_IF_ERROR(producer->Send(message));
  }
  RETURN_IF_ERROR(producer->Flush(kFlushLimit));
  if (options.records > 0) show(options.records);
  return absl::OkStatus();
}

}  // namespace satrap
