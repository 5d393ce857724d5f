#include "data_loader/kafka/topic_stream.h"

#include "common/base/status_macros.h"
#include "common/kafka/broker_outage.h"
#include "common/kafka/partition_reader.h"
#include "common/thread/clock.h"

namespace satrap {

TopicAccess AccessToBrokers(const Logger& logger, std::shared_ptr<TopicAnchors> anchors) {
  TopicAccess access;
  // All streams and threads of the loader share this object.
  const auto outage = std::make_shared<BrokerOutage>();
  AnchorSink keep;
  if (anchors != nullptr) keep = [anchors](const auto& of_look) { anchors->Keep(of_look); };
  access.open_source = [logger, outage, anchors, keep](
                           const KafkaConfig& config, std::vector<KafkaPlace> places,
                           bool trains) -> absl::StatusOr<std::unique_ptr<MessageSource>> {
    const bool has_anchors = trains && anchors != nullptr;
    if (has_anchors) {
      for (KafkaPlace& place : places) place.anchor = anchors->Of(place.partition);
    }
    ASSIGN_OR_RETURN(auto reader, PartitionReader::Open(config, std::move(places), logger, outage,
                                                        has_anchors ? keep : nullptr));
    return std::unique_ptr<MessageSource>(std::move(reader));
  };
  access.open_dead_letters = [logger](const KafkaConfig& config) {
    return DeadLetters::Create(config, logger);
  };
  access.now_ms = MonotonicMs;
  return access;
}

}  // namespace satrap
