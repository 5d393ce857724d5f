#include "data_loader/kafka/topic_anchors.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/file/file_system.h"
#include "proto/topic_anchors.pb.h"

namespace satrap {
namespace {

constexpr char kDraft[] = ".partial";

bool IsSame(const PartitionAnchor& a, const PartitionAnchor& b) {
  if (a.earliest != b.earliest || a.message.has_value() != b.message.has_value()) return false;
  return !a.message.has_value() ||
         (a.message->offset == b.message->offset && a.message->hash == b.message->hash);
}

// Whether retention removes the message of `a` later than that of `b`, if both anchors are valid.
bool IsLater(const PartitionAnchor& a, const PartitionAnchor& b) {
  const int64_t of_a = a.message.has_value() ? a.message->offset : -1;
  const int64_t of_b = b.message.has_value() ? b.message->offset : -1;
  return of_a != of_b ? of_a > of_b : a.earliest > b.earliest;
}

}  // namespace

TopicAnchors::TopicAnchors(std::string folder, int loader, Logger logger)
    : folder_(std::move(folder)),
      name_(absl::StrCat("loader-", loader)),
      logger_(std::move(logger)) {}

absl::StatusOr<std::shared_ptr<TopicAnchors>> TopicAnchors::Open(const std::string& run_dir,
                                                                 int loader, Logger logger) {
  std::shared_ptr<TopicAnchors> self(
      new TopicAnchors(run_dir + "/topic_anchors", loader, std::move(logger)));
  FileSystem* const disk = DiskFileSystem();
  RETURN_IF_ERROR(disk->CreateFolders(self->folder_));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk->List(self->folder_));
  for (const std::string& name : names) {
    // A draft: another loader may be writing its file just now.
    if (absl::EndsWith(name, kDraft)) continue;
    RETURN_IF_ERROR(self->Read(absl::StrCat(self->folder_, "/", name)));
  }
  return self;
}

absl::Status TopicAnchors::Read(const std::string& path) {
  TopicAnchorsFile file;
  const absl::Status read_file = ReadCheckedText(path, DiskFileSystem(), &file);
  if (!read_file.ok()) {
    return absl::Status(
        read_file.code(),
        absl::StrCat(read_file.message(), ". Without this file the run can go on, but it does not ",
                     "notice then that a topic was made anew while it was stopped"));
  }
  MutexLock lock(&mutex_);
  for (const TopicAnchor& anchor : file.anchors()) {
    PartitionAnchor read;
    if (anchor.has_offset()) {
      read.message = MessageMark{static_cast<int64_t>(anchor.offset()), anchor.hash()};
    }
    if (anchor.has_earliest()) read.earliest = static_cast<int64_t>(anchor.earliest());
    const auto [at, is_new] = known_.try_emplace({anchor.topic(), anchor.partition()}, read);
    if (!is_new && IsLater(read, at->second)) at->second = read;
  }
  return absl::OkStatus();
}

absl::optional<PartitionAnchor> TopicAnchors::Of(const KafkaPartition& partition) const {
  MutexLock lock(&mutex_);
  const auto found = known_.find(partition);
  if (found == known_.end()) return absl::nullopt;
  return found->second;
}

void TopicAnchors::Keep(const std::vector<std::pair<KafkaPartition, PartitionAnchor>>& anchors) {
  MutexLock lock(&mutex_);
  bool any = false;
  for (const auto& [partition, anchor] : anchors) {
    known_[partition] = anchor;
    const auto [at, is_new] = own_.try_emplace(partition, anchor);
    if (!is_new && IsSame(at->second, anchor)) continue;
    at->second = anchor;
    any = true;
  }
  if (!any) return;
  const absl::Status written = Write();
  if (written.ok() || std::exchange(warned_, true)) return;
  logger_.Warning(
      absl::StrCat("what tells the topics from others of the same names cannot be "
                   "kept: ",
                   written.message()));
}

absl::Status TopicAnchors::Write() {
  TopicAnchorsFile file;
  for (const auto& [partition, anchor] : own_) {
    TopicAnchor* const to = file.add_anchors();
    to->set_topic(partition.topic);
    to->set_partition(partition.partition);
    if (anchor.message.has_value()) {
      to->set_offset(static_cast<uint64_t>(anchor.message->offset));
      to->set_hash(anchor.message->hash);
    }
    if (anchor.earliest >= 0) to->set_earliest(static_cast<uint64_t>(anchor.earliest));
  }
  FileSystem* const disk = DiskFileSystem();
  const std::string path = absl::StrCat(folder_, "/", name_);
  RETURN_IF_ERROR(disk->Remove(path + kDraft));
  RETURN_IF_ERROR(WriteCheckedText(path + kDraft, file, disk));
  RETURN_IF_ERROR(disk->Rename(path + kDraft, path));
  return disk->SyncFolder(folder_);
}

}  // namespace satrap
