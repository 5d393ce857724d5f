#include "data_loader/candidates/make_candidate_list.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/config/candidates.h"
#include "common/config/job_facts.h"
#include "common/file/file_system.h"
#include "data_loader/batch/file_block_reader.h"
#include "data_loader/batch/synthetic_block_reader.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/source/line_reader.h"
#include "data_loader/source/run_files.h"

namespace satrap {
namespace {

const FeatureConfig& FeatureOf(const JobConfig& job) {
  const int feature = CandidateFeatureOf(job);
  CHECK(feature >= 0) << "no feature " << job.model().candidates().feature();
  return job.data().features(feature);
}

absl::Status TooMany(const std::string& where, size_t most_items) {
  return absl::ResourceExhaustedError(absl::StrCat(
      where, ": more than ", most_items,
      " different items. Name a list of the most frequent ones (model.candidates.list)"));
}

// Finds the id that the feature makes from an item's text.
class ItemIds {
 public:
  explicit ItemIds(const JobConfig& job)
      : are_numbers_(job.data().has_synthetic() || job.data().has_record()) {
    // With a vocabulary, an id is the word's number in the vocabulary, as in the parser.
    const std::string& name = ColumnOf(FeatureOf(job));
    for (const ColumnConfig& column : job.data().csv().columns()) {
      if (column.name() != name) continue;
      for (const std::string& word : column.vocabulary()) {
        vocabulary_.emplace(word, vocabulary_.size());
      }
    }
  }

  // False if the feature makes no id from the text.
  bool Find(absl::string_view text, uint64_t* id) const {
    if (are_numbers_) return absl::SimpleAtoi(text, id);
    if (vocabulary_.empty()) {
      *id = StringId(text);
      return true;
    }
    const auto at = vocabulary_.find(text);
    if (at != vocabulary_.end()) *id = at->second;
    return at != vocabulary_.end();
  }

 private:
  const bool are_numbers_;
  absl::flat_hash_map<std::string, uint64_t> vocabulary_;
};

FileIdentity IdentityOf(const CandidateList& list) {
  FileIdentity identity;
  identity.set_path("candidates.bin");
  identity.set_bytes(list.size());
  identity.set_content(CandidateListHash(list));
  return identity;
}

// The path of the list's description. It is in the folder of the lists of files, because a run must
// keep its candidates just as it must keep its files.
std::string IdentityPath(const JobConfig& job) { return job.run_dir() + "/splits/candidates"; }

absl::Status WriteIdentity(const JobConfig& job, const FileIdentity& identity) {
  FileSystem* const disk = DiskFileSystem();
  const std::string path = IdentityPath(job);
  const std::string draft = path + ".partial";
  const std::string folder = job.run_dir() + "/splits";
  RETURN_IF_ERROR(disk->CreateFolders(folder));
  RETURN_IF_ERROR(disk->Remove(draft));  // left by a loader that died here
  RETURN_IF_ERROR(WriteCheckedText(draft, identity, disk));
  RETURN_IF_ERROR(disk->Rename(draft, path));
  return disk->SyncFolder(folder);
}

absl::Status AnotherList(const std::string& path, const FileIdentity& was, const FileIdentity& is,
                         bool was_removed) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   was_removed ? " was removed, and the list that was made anew differs from it"
                               : " is not the list of items that this run began with",
                   ": it had ", was.bytes(), " items and hash ",
                   absl::Hex(was.content(), absl::kZeroPad16), ", and now it has ", is.bytes(),
                   " items and hash ", absl::Hex(is.content(), absl::kZeroPad16),
                   ". Put the file back as it was to continue, or begin a new run"));
}

absl::StatusOr<std::unique_ptr<BlockReader>> OpenSplit(const StreamSpec& spec, uint32_t split,
                                                       Parser* parser, ReadProgress* progress) {
  if (spec.click_log != nullptr) {
    return NewSyntheticBlockReader(spec.splits[split], spec.stream, kUnshuffledBlockRows,
                                   spec.click_log.get(), progress);
  }
  FileBlockOptions options;
  options.stream = spec.stream;
  options.block_rows = kUnshuffledBlockRows;
  options.filter = &spec.filter;
  options.parser = parser;
  options.progress = progress;
  options.report_bad = false;  // training reports them
  options.check = &spec.check;
  return NewFileBlockReader(spec.splits[split], split, options);
}

}  // namespace

absl::StatusOr<CandidateList> ReadItemFile(const JobConfig& job, const std::string& path,
                                           size_t most_items) {
  // Refuse a compressed file: its bytes would be read as names of items, each of them a valid id.
  ASSIGN_OR_RETURN(const Compression compression, SniffFile(path));
  if (compression != Compression::kNone) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is compressed, but model.candidates.list must be a plain file: decompress it"));
  }
  Split file;
  file.path = path;
  file.to = std::numeric_limits<uint64_t>::max();
  ASSIGN_OR_RETURN(const std::unique_ptr<LineReader> reader, LineReader::Open(file));
  const ItemIds ids(job);
  const bool needs_counts = job.model().candidates().sampler() == CandidatesConfig::FIXED_UNIGRAM;
  CandidateList list;
  absl::flat_hash_set<uint64_t> seen;
  bool counted = false;
  LineReader::Line line;
  for (size_t number = 1;; ++number) {
    ASSIGN_OR_RETURN(const bool found, reader->Next(&line));
    if (!found) break;
    if (line.text.empty()) continue;
    const std::string where = absl::StrCat(path, ":", number);
    const auto refused = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(where, ": ", why));
    };
    const size_t tab = line.text.find('\t');
    const bool has_count = tab != absl::string_view::npos;
    const absl::string_view item = line.text.substr(0, tab);
    uint64_t id = 0, count = 0;
    if (has_count && !absl::SimpleAtoi(line.text.substr(tab + 1), &count)) {
      return refused(
          absl::StrCat("a count must be a whole number, got '", line.text.substr(tab + 1), "'"));
    }
    if (!has_count && needs_counts) return refused("FIXED_UNIGRAM needs a count after a tab");
    // The list is sorted by counts, so an item without a count would seem to be the rarest.
    if (list.size() > 0 && has_count != counted) {
      return refused("either all items have a count or none has");
    }
    counted = has_count;
    if (line.too_long || !ids.Find(item, &id)) {
      return refused(absl::StrCat("'", item.substr(0, 64), "' is not an id of feature '",
                                  job.model().candidates().feature(), "'"));
    }
    if (!seen.insert(id).second) return refused(absl::StrCat("the item '", item, "' occurs twice"));
    // Check this before the item is added: a list with exactly `most_items` items is valid.
    if (list.size() == most_items) return TooMany(where, most_items);
    list.ids.push_back(id);
    list.counts.push_back(count);
  }
  list.Sort();
  return list;
}

absl::StatusOr<CandidateList> CountItems(const StreamSpec& train, size_t most_items) {
  const int column = train.schema.IndexOfId(ColumnOf(FeatureOf(train.job)));
  CHECK(column >= 0);
  const std::unique_ptr<Parser> parser =
      train.click_log == nullptr ? NewParser(train.job.data(), train.stream) : nullptr;
  // Do not report progress here: training reads the same files again, and reports it then.
  ReadProgress unreported{ReadProgress::Options()};
  absl::flat_hash_map<uint64_t, uint64_t> counts;
  Block block(train.schema);
  for (uint32_t split = 0; split < train.splits.size(); ++split) {
    ASSIGN_OR_RETURN(const std::unique_ptr<BlockReader> reader,
                     OpenSplit(train, split, parser.get(), &unreported));
    for (;;) {
      ASSIGN_OR_RETURN(const bool found, reader->Next(&block));
      if (!found) break;
      for (size_t row = 0; row < block.records.rows(); ++row) {
        ++counts[block.records.ids(row)[column]];
      }
      // Check after each block, not only at the end, in order to bound memory.
      if (counts.size() > most_items) return TooMany(train.splits[split].path, most_items);
    }
  }
  CandidateList list;
  list.ids.reserve(counts.size());
  for (const auto& [id, count] : counts) list.ids.push_back(id);
  std::sort(list.ids.begin(), list.ids.end());  // the table's own order differs from run to run
  for (const uint64_t id : list.ids) list.counts.push_back(counts[id]);
  list.Sort();
  return list;
}

absl::Status MakeCandidateList(const JobConfig& job, const StreamSpec* train,
                               const absl::optional<FileIdentity>& item_file) {
  const std::string path = CandidateListPath(job);
  FileIdentity was;
  // Candidates are drawn by their places in the list, so another list would change what a resumed
  // run trains. Therefore compare the list with the description, if there is one.
  const absl::Status known = ReadCheckedText(IdentityPath(job), DiskFileSystem(), &was);
  if (!known.ok() && !absl::IsNotFound(known)) return known;
  absl::StatusOr<CandidateList> list = ReadCandidateList(path);
  const bool is_there = list.ok();
  if (!is_there) {
    if (absl::IsDataLoss(list.status())) {
      return absl::DataLossError(absl::StrCat(
          list.status().message(),
          ". Put the file back as it was, or remove it. If you remove it, it is made again from "
          "the items that the run began with; if that is not possible, the run ends and says what "
          "is missing"));
    }
    if (!absl::IsNotFound(list.status())) return list.status();
    const std::string& file = job.model().candidates().list();
    list = CandidateList();
    if (!file.empty()) {
      if (item_file.has_value()) RETURN_IF_ERROR(CheckItemFile(job, *item_file));
      FileIdentity identity;
      identity.set_path(file);
      list = ReadItemFile(job, PathOf(job, identity));
    } else if (train != nullptr) {
      list = CountItems(*train);
    }
    RETURN_IF_ERROR(list.status());
  }
  const FileIdentity is = IdentityOf(*list);
  if (known.ok() && (is.bytes() != was.bytes() || is.content() != was.content())) {
    return AnotherList(path, was, is, !is_there);
  }
  if (!is_there) RETURN_IF_ERROR(WriteCandidateList(path, *list));
  // Write the description after the list, so that it never exists without the list.
  return known.ok() ? absl::OkStatus() : WriteIdentity(job, is);
}

}  // namespace satrap
