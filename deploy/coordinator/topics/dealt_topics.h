// Which loader reads which topic partition of the train stream in one generation, and how far the
// loaders have read.
//
// The partitions that a generation begins with are distributed by a rule that all roles know: in
// mode HYBRID, partition j goes to loader j mod loaders; in mode SYNC, it goes to lane j mod lanes
// and so to that lane's loader. A partition that is added later goes to the loader that has the
// fewest partitions, and stays there.
//
// Not thread-safe: the lock of RunTopics guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_TOPICS_DEALT_TOPICS_H_
#define SATRAP_DEPLOY_COORDINATOR_TOPICS_DEALT_TOPICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/checkpoint/ledger/ledger.h"
#include "common/kafka/partition.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class DealtTopics {
 public:
  explicit DealtTopics(const JobConfig& job);

  // Distributes the partitions that the generation begins with. REQUIRES: called once, before the
  // other methods
  void Begin(const StreamTopics& train);
  // Distributes partitions that were added later.
  void Add(const StreamTopics& added);
  bool begun() const { return begun_; }
  const StreamTopics& train() const { return train_; }

  // Adds every partition whose number is at least `known`, except those that the generation began
  // with.
  void AddTo(uint32_t known, HeartbeatAnswer* answer) const;

  // Adds the status of the partitions, from what the loaders among answer->roles() have reported.
  // `unix_ms` is the current time.
  void AddTo(int64_t unix_ms, StatusAnswer* answer) const;

 private:
  std::vector<uint32_t> first_loaders_;  // by lane, or by partition modulo first_loaders_.size()
  bool begun_ = false;
  StreamTopics train_;
  size_t begun_with_ = 0;
  std::vector<uint32_t> loader_of_;      // by partition
  std::vector<uint64_t> partitions_of_;  // number of partitions, by loader
};

// The first unconsumed offset of each partition at a cut with this position and ledger; the group
// commits these. Later epochs read again what the first one has consumed, so they do not change the
// offsets.
std::vector<uint64_t> ConsumedOffsets(const StreamTopics& train, const RunPosition& position,
                                      const Ledger& ledger);

// The offsets in the form of a group's commit. REQUIRES: offset i belongs to partition i of
// `train`; there are no more offsets than partitions
std::vector<KafkaPlace> PlacesOf(const StreamTopics& train, const std::vector<uint64_t>& offsets);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_TOPICS_DEALT_TOPICS_H_
