// The BatchMaker of streams that read topics. It reads its share of the partitions of a
// PartitionFeed in parallel and makes blocks of their messages (partition_blocks.h), which it
// queues as they become ready. It asks for no splits.
//
// In an ordered stream without max_wait_ms the partitions take turns, block by block, until each is
// finished. So the order of a lane's records depends only on the topics. In all other streams, a
// block that is not full is closed when its first message has waited too long: max_wait_ms if its
// partition is read to its end, or ten times as long while the broker has more messages. Then a
// batch that is not full is made. A lane that has had no messages for that time makes a batch of
// zero samples, without which neither a cut nor a stop would be possible.
//
// Back-pressure: messages are read only within MakeBatch.
//
// The partitions of the loader share queue_bytes. A maker reads with one client, which it reopens
// when the loader receives further partitions, and with one more client for each partition of which
// it has skipped lost offsets.
//
// Thread safety is that of BatchMaker. MakeBatch waits at most about 50 ms for messages, and at
// most another 50 ms for the broker to acknowledge dead letters. Then it returns kNothingYet.
// Reopening clients takes up to a second, and asking for offsets after a loss up to 5 s
// (partition_reader.h).

#ifndef SATRAP_DATA_LOADER_KAFKA_TOPIC_BATCH_MAKER_H_
#define SATRAP_DATA_LOADER_KAFKA_TOPIC_BATCH_MAKER_H_

#include <cstddef>
#include <memory>

#include "data_loader/batch/batch_maker.h"
#include "data_loader/batch/stream_spec.h"
#include "data_loader/kafka/partition_feed.h"
#include "data_loader/kafka/topic_stream.h"

namespace satrap {

struct TopicBatchMakerOptions {
  std::shared_ptr<const StreamSpec> spec;
  std::shared_ptr<TopicStream> stream;
  std::shared_ptr<PartitionFeed> feed;
  // This is maker number `maker` of the `makers` that share the feed.
  size_t maker = 0;
  size_t makers = 1;
};
// MakeBatch fails as MessageSource::Read, ReadProgress::AddBad and DeadLetterSink do, but with
// OUT_OF_RANGE only if lost offsets must not be skipped. It fails with FAILED_PRECONDITION if a
// topic has changed since the run began. Errors of MakeBatch name the partition and offsets.
std::unique_ptr<BatchMaker> NewTopicBatchMaker(TopicBatchMakerOptions options);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_BATCH_MAKER_H_
