// The anchors of the topic partitions that the loaders of a run read (common/kafka/partition.h),
// kept in the run's folder. With them, a run that continues detects that a topic was deleted and
// made anew while the run was stopped, even if nothing of the topic was trained yet. An anchor
// changes only after a check has found that the topic is still the same. So the run also refuses to
// continue from a cut that was taken after the old topic was deleted, but before a check detected
// that.
//
// Thread-safe. Open and Keep wait for the disk. Of never waits for the disk, even while another
// thread waits for it.

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
  // Reads what the loaders of earlier generations have left in RUN_DIR/topic_anchors. Errors are
  // those of the disk; DATA_LOSS, naming the file and what to do, if a file is damaged. `disk` is
  // not owned.
  static absl::StatusOr<std::shared_ptr<TopicAnchors>> Open(const std::string& run_dir, int loader,
                                                            Logger logger,
                                                            FileSystem* disk = DiskFileSystem());

  // The partition's anchor; absent if none is known.
  absl::optional<PartitionAnchor> Of(const KafkaPartition& partition) const;

  // Stores the anchors that a check has returned, and writes this loader's file if an anchor is new
  // or has changed. The file's anchors of other partitions stay. If the file cannot be written,
  // warns, but only the first time.
  void Keep(const std::vector<std::pair<KafkaPartition, PartitionAnchor>>& anchors);

 private:
  TopicAnchors(std::string folder, int loader, Logger logger, FileSystem* disk);
  absl::Status Read(const std::string& name);
  absl::Status Write() REQUIRES(write_mutex_);

  const std::string folder_;
  const std::string name_;  // the name of this loader's file
  const Logger logger_;
  FileSystem* const disk_;
  // Held while the file is written. Locked before mutex_, which is held only briefly.
  Mutex write_mutex_;
  mutable Mutex mutex_;
  std::map<KafkaPartition, PartitionAnchor> known_ GUARDED_BY(mutex_);
  std::map<KafkaPartition, PartitionAnchor> own_ GUARDED_BY(mutex_);  // the anchors in the file
  bool warned_ GUARDED_BY(write_mutex_) = false;
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_KAFKA_TOPIC_ANCHORS_H_
