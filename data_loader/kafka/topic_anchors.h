// The anchors of the topic partitions that the loaders of a run read (common/kafka/partition.h),
// kept in the run's folder. With them a run that continues detects a topic that was deleted and
// made anew while the run stood still, even if nothing of it was trained yet. An anchor moves on
// only after a look that has found the topic to be the same. So a run does not continue either from
// a cut that was taken after the old topic was gone but before a look detected that.
//
// Thread-safe. Open and Keep wait for the disk. Of does not, whatever another thread does.

#ifndef SATRAP_DATA_LOADER_KAFKA_TOPIC_ANCHORS_H_
#define SATRAP_DATA_LOADER_KAFKA_TOPIC_ANCHORS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/file/file_system.h"
#include "common/kafka/partition.h"
#include "common/log/log.h"
#include "common/thread/mutex.h"

namespace satrap {

class TopicAnchors {
 public:
  // Reads what loaders of earlier generations have left in RUN_DIR/topic_anchors. Errors are those
  // of the disk; DATA_LOSS, naming the file and what to do, if one is damaged.
  // `disk` is not owned.
  static absl::StatusOr<std::shared_ptr<TopicAnchors>> Open(const std::string& run_dir, int loader,
                                                            Logger logger,
                                                            FileSystem* disk = DiskFileSystem());

  // The partition's anchor; absent if none is known.
  absl::optional<PartitionAnchor> Of(const KafkaPartition& partition) const;

  // Takes the anchors of a look and writes this loader's file, if something is new. What the file
  // has of other partitions stays. A disk that does not take it is warned of once.
  void Keep(const std::vector<std::pair<KafkaPartition, PartitionAnchor>>& anchors);

 private:
  TopicAnchors(std::string folder, int loader, Logger logger, FileSystem* disk);
  absl::Status Read(const std::string& name);
  absl::Status Write() REQUIRES(write_mutex_);

  const std::string folder_;
  const std::string name_;  // of this loader's file
  const Logger logger_;
  FileSystem* const disk_;
  // Held while the file is written; taken before mutex_, which is held for moments.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  std::map<KafkaPartition, PartitionAnchor> known_ GUARDED_BY(mutex_);
  std::map<KafkaPartition, PartitionAnchor> own_ GUARDED_BY(mutex_);  // those of the file
  bool warned_ GUARDED_BY(write_mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_ANCHORS_H_
