#include "deploy/coordinator/splits/split_files.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/numeric/hash.h"
#include "proto/hot.pb.h"

namespace satrap {
namespace {

constexpr size_t kDigestDigits = 16;

std::string SplitsDir(const JobConfig& job) { return job.run_dir() + "/splits"; }

// All lists in the folder, in the order of their names. Drafts have names of another form.
absl::StatusOr<std::vector<SplitList>> ReadLists(const std::string& dir, FileSystem* file_system) {
  std::vector<SplitList> lists;
  auto names = file_system->List(dir);
  if (absl::IsNotFound(names.status())) return lists;
  RETURN_IF_ERROR(names.status());
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    if (name.size() != kDigestDigits) continue;
    SplitList list;
    RETURN_IF_ERROR(ReadCheckedText(absl::StrCat(dir, "/", name), file_system, &list));
    lists.push_back(std::move(list));
  }
  return lists;
}

absl::Status WriteList(const JobConfig& job, const SplitList& list, uint64_t writer,
                       FileSystem* file_system) {
  const std::string dir = SplitsDir(job);
  RETURN_IF_ERROR(file_system->CreateFolders(dir));
  RETURN_IF_ERROR(file_system->SyncFolder(job.run_dir()));
  const std::string path = absl::StrCat(dir, "/", SplitListDigest(list));
  // The name contains `writer`, because another coordinator may write the same list.
  const std::string draft =
      absl::StrCat(path, ".", absl::Hex(writer, absl::kZeroPad16), ".partial");
  RETURN_IF_ERROR(WriteCheckedText(draft, list, file_system));
  RETURN_IF_ERROR(file_system->Rename(draft, path));
  return file_system->SyncFolder(dir);
}

}  // namespace

std::string SplitListDigest(const SplitList& splits) {
  return absl::StrCat(absl::Hex(Xxh64(splits.SerializeAsString()), absl::kZeroPad16));
}

SplitList WithTopics(SplitList files, const std::vector<StreamTopics>& topics) {
  files.mutable_topics()->Assign(topics.begin(), topics.end());
  return files;
}

absl::StatusOr<SplitList> FixSplitList(const JobConfig& job, const SplitList& proposed,
                                       const std::vector<StreamTopics>& topics,
                                       absl::optional<uint64_t> cut_order, uint64_t writer,
                                       FileSystem* file_system) {
  ASSIGN_OR_RETURN(const std::vector<SplitList> lists, ReadLists(SplitsDir(job), file_system));
  if (cut_order.has_value()) {
    for (const SplitList& list : lists) {
      if (OrderFingerprint(job, WithTopics(list, topics)) == *cut_order) return list;
    }
  }
  const std::string digest = SplitListDigest(proposed);
  for (const SplitList& list : lists) {
    if (SplitListDigest(list) == digest) return list;
  }
  if (!lists.empty()) return lists.front();
  RETURN_IF_ERROR(WriteList(job, proposed, writer, file_system));
  return proposed;
}

std::string FirstDifference(const SplitList& a, const SplitList& b) {
  if (a.streams_size() != b.streams_size()) {
    return absl::StrCat(b.streams_size(), " streams, not ", a.streams_size());
  }
  for (int s = 0; s < a.streams_size(); ++s) {
    const StreamFiles& ours = a.streams(s);
    const StreamFiles& theirs = b.streams(s);
    if (ours.stream() != theirs.stream() || ours.files_size() != theirs.files_size()) {
      return absl::StrCat(Counted(static_cast<uint64_t>(theirs.files_size()), "file"),
                          " of stream ", theirs.stream(), ", not ", ours.files_size(),
                          " of stream ", ours.stream());
    }
    for (int f = 0; f < ours.files_size(); ++f) {
      const FileIdentity& mine = ours.files(f);
      const FileIdentity& other = theirs.files(f);
      if (mine.path() != other.path()) {
        return absl::StrCat("the file ", other.path(), " instead of ", mine.path());
      }
      if (mine.bytes() != other.bytes()) {
        return absl::StrCat(other.bytes(), " bytes in ", other.path(), ", not ", mine.bytes());
      }
      if (mine.content() != other.content()) {
        return absl::StrCat("another content of ", other.path());
      }
    }
  }
  return "";
}

}  // namespace satrap
