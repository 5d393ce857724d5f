#include "data_loader/kafka/topic_anchors.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/file/durable_file.h"
#include "proto/topic_anchors.pb.h"

namespace satrap {
namespace {

constexpr char kName[] = "loader-";

// Whether a loader wrote the file `name`. Others may be a draft that a loader is just writing, or a
// file that a user has put aside.
bool IsOfALoader(absl::string_view name) {
  int loader = 0;
  return absl::ConsumePrefix(&name, kName) && absl::SimpleAtoi(name, &loader);
}

bool IsSame(const PartitionAnchor& a, const PartitionAnchor& b) {
  if (a.earliest != b.earliest || a.message.has_value() != b.message.has_value()) return false;
  return !a.message.has_value() ||
         (a.message->offset == b.message->offset && a.message->hash == b.message->hash);
}

// Whether retention removes the message of `a` later than the message of `b`, provided that both
// anchors are valid.
bool IsLater(const PartitionAnchor& a, const PartitionAnchor& b) {
  const int64_t of_a = a.message.has_value() ? a.message->offset : -1;
  const int64_t of_b = b.message.has_value() ? b.message->offset : -1;
  return of_a != of_b ? of_a > of_b : a.earliest > b.earliest;
}

}  // namespace

TopicAnchors::TopicAnchors(std::string folder, int loader, Logger logger, FileSystem* disk)
    : folder_(std::move(folder)),
      name_(absl::StrCat(kName, loader)),
      logger_(std::move(logger)),
      disk_(disk) {}

absl::StatusOr<std::shared_ptr<TopicAnchors>> TopicAnchors::Open(const std::string& run_dir,
                                                                 int loader, Logger logger,
                                                                 FileSystem* disk) {
  std::shared_ptr<TopicAnchors> self(
      new TopicAnchors(run_dir + "/topic_anchors", loader, std::move(logger), disk));
  RETURN_IF_ERROR(disk->CreateFolders(self->folder_));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, disk->List(self->folder_));
  for (const std::string& name : names) {
    if (IsOfALoader(name)) RETURN_IF_ERROR(self->Read(name));
  }
  return self;
}

// Reads an anchor file. A damaged file ends the run, as a damaged cut does. If it were ignored and
// a topic had been deleted and made anew, the new topic would be read from the old one's offsets
// on, and its first messages would be lost without a warning. Only a person can know that no topic
// was made anew.
absl::Status TopicAnchors::Read(const std::string& name) {
  TopicAnchorsFile file;
  const absl::Status read_file = ReadCheckedText(absl::StrCat(folder_, "/", name), disk_, &file);
  if (!read_file.ok()) {
    return absl::Status(
        read_file.code(),
        absl::StrCat(read_file.message(), "; it shows whether a topic was deleted and made anew ",
                     "while the run was stopped. If none was, move the file to another folder, ",
                     "and `satrap resume` continues without it"));
  }
  MutexLock lock(&mutex_);
  for (const TopicAnchor& anchor : file.anchors()) {
    const KafkaPartition partition = {anchor.topic(), anchor.partition()};
    PartitionAnchor read;
    if (anchor.has_offset()) {
      read.message = MessageMark{static_cast<int64_t>(anchor.offset()), anchor.hash()};
    }
    if (anchor.has_earliest()) read.earliest = static_cast<int64_t>(anchor.earliest());
    // Keep partitions in this loader's file that it does not read now: it may be the only file that
    // has their anchors.
    if (name == name_) own_[partition] = read;
    const auto [at, is_new] = known_.try_emplace(partition, read);
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
  bool any = false;
  // Lock before the anchors change, so that an older state is never written after a newer one.
  MutexLock write_lock(&write_mutex_);
  {
    MutexLock lock(&mutex_);
    for (const auto& [partition, anchor] : anchors) {
      known_[partition] = anchor;
      const auto [at, is_new] = own_.try_emplace(partition, anchor);
      if (!is_new && IsSame(at->second, anchor)) continue;
      at->second = anchor;
      any = true;
    }
  }
  if (!any) return;
  const absl::Status written = Write();
  if (written.ok() || std::exchange(warned_, true)) return;
  logger_.Warning(absl::StrCat(
      "the messages by which the run recognises its topics cannot be written to its folder: ",
      written.message()));
}

absl::Status TopicAnchors::Write() {
  TopicAnchorsFile file;
  {
    MutexLock lock(&mutex_);
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
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> written,
                   DurableFile::Create(absl::StrCat(folder_, "/", name_), disk_));
  RETURN_IF_ERROR(written->Append(CheckedText(file)));
  return written->Commit();
}

}  // namespace satrap
