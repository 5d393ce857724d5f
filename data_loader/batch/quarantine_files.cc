#include "data_loader/batch/quarantine_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/file/file_error.h"

namespace satrap {
namespace {

// The fields of a line in a .tsv file, in order.
enum Field { kFile, kOffset, kLine, kStream, kReason, kSplit, kBlock, kIndex, kFields };

// A line to keep, with the pair of files that it is in and its place in each of the two. Sizes
// include the line end.
struct Kept {
  int stream;  // 0 train, 1 valid, 2 test
  uint32_t split;
  uint64_t offset;
  uint64_t number;  // the line's number; for a topic, within the message at `offset`
  size_t pair;
  uint64_t text_from;
  uint64_t place_from;
  uint32_t text_bytes;
  uint32_t place_bytes;

  std::tuple<int, uint32_t, uint64_t, uint64_t> key() const {
    return {stream, split, offset, number};
  }
};

absl::optional<int> StreamOf(absl::string_view name) {
  if (name == "train") return 0;
  if (name == "valid") return 1;
  if (name == "test") return 2;
  return absl::nullopt;
}

bool IsConsumed(const Ledger& ledger, uint32_t split, uint64_t block) {
  // Check epoch 0, because bad lines are only reported in that epoch.
  return ledger.IsSplitDone(0, split) || ledger.IsBlockBegun(0, split, block);
}

// Reads the next line with its end. False at the end of the file, or if the last line is
// incomplete.
bool NextLine(std::ifstream* file, std::string* line) {
  if (!std::getline(*file, *line) || file->eof()) return false;
  *line += '\n';
  return true;
}

// Adds the lines of the files `path`.txt and `path`.tsv. Loaders write to the .txt first, so the
// last lines may be missing in the .tsv.
absl::Status AddPair(const std::string& path, size_t pair, const Ledger* ledger,
                     std::vector<Kept>* kept) {
  std::ifstream texts(path + ".txt", std::ios::binary), places(path + ".tsv", std::ios::binary);
  if (!texts) return FileError("read", path + ".txt");
  if (!places) return FileError("read", path + ".tsv");
  Kept line = {0, 0, 0, 0, pair, 0, 0, 0, 0};
  std::string text, place;
  while (NextLine(&texts, &text) && NextLine(&places, &place)) {
    line.text_from += line.text_bytes;
    line.place_from += line.place_bytes;
    line.text_bytes = static_cast<uint32_t>(text.size());
    line.place_bytes = static_cast<uint32_t>(place.size());
    const std::vector<absl::string_view> fields =
        absl::StrSplit(absl::string_view(place).substr(0, place.size() - 1), '\t');
    uint64_t block;
    // Skip a line that a power failure has left incomplete.
    if (fields.size() != kFields || !absl::SimpleAtoi(fields[kSplit], &line.split) ||
        !absl::SimpleAtoi(fields[kOffset], &line.offset) ||
        !absl::SimpleAtoi(fields[kLine], &line.number) ||
        !absl::SimpleAtoi(fields[kBlock], &block)) {
      continue;
    }
    const absl::optional<int> stream = StreamOf(fields[kStream]);
    if (!stream) continue;
    line.stream = *stream;
    const bool is_train = line.stream == 0;
    if (is_train && ledger != nullptr && !IsConsumed(*ledger, line.split, block)) continue;
    kept->push_back(line);
  }
  return absl::OkStatus();
}

// Collects the kept lines from the files with this suffix, one of each pair, and writes them to
// `path`. `from` and `bytes` point to the members of Kept that say where a line is in such a file.
absl::Status WriteLines(const std::vector<std::string>& pairs, const std::vector<Kept>& kept,
                        const char* suffix, uint64_t Kept::*from, uint32_t Kept::*bytes,
                        const std::string& path) {
  std::vector<std::ifstream> files;
  for (const std::string& pair : pairs) files.emplace_back(pair + suffix, std::ios::binary);
  const std::string written_path = path + ".tmp";
  std::ofstream out(written_path, std::ios::binary | std::ios::trunc);
  if (!out) return FileError("write", written_path);
  std::string text;
  for (const Kept& line : kept) {
    std::ifstream& file = files[line.pair];
    text.resize(line.*bytes);
    file.seekg(static_cast<std::streamoff>(line.*from));
    if (!file.read(text.data(), static_cast<std::streamsize>(text.size()))) {
      return absl::DataLossError(
          absl::StrCat(pairs[line.pair], suffix, " changed while it was merged"));
    }
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  out.close();
  if (!out) return FileError("write", written_path, errno != 0 ? errno : EIO);
  if (std::rename(written_path.c_str(), path.c_str()) != 0) return FileError("write", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> MergeQuarantine(const std::string& run_dir, const Ledger* ledger) {
  const std::string folder = run_dir + "/quarantine";
  std::vector<std::string> pairs;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    // Look for .txt files: a loader makes the .tsv first and may have died before it made the .txt.
    if (!absl::StartsWith(name, "g") || !absl::StrContains(name, "-loader-")) continue;
    if (absl::EndsWith(name, ".txt"))
      pairs.push_back(folder + "/" + name.substr(0, name.size() - 4));
  }
  if (error == std::errc::no_such_file_or_directory) return uint64_t{0};
  if (error) return FileError("read", folder, error.value());
  std::sort(pairs.begin(), pairs.end());
  std::vector<Kept> kept;
  for (size_t pair = 0; pair < pairs.size(); ++pair) {
    RETURN_IF_ERROR(AddPair(pairs[pair], pair, ledger, &kept));
  }
  std::stable_sort(kept.begin(), kept.end(),
                   [](const Kept& a, const Kept& b) { return a.key() < b.key(); });
  kept.erase(std::unique(kept.begin(), kept.end(),
                         [](const Kept& a, const Kept& b) { return a.key() == b.key(); }),
             kept.end());
  const std::string merged = folder + "/quarantine";
  if (kept.empty()) {
    for (const char* suffix : {".txt", ".tsv"}) std::filesystem::remove(merged + suffix, error);
    return uint64_t{0};
  }
  RETURN_IF_ERROR(
      WriteLines(pairs, kept, ".txt", &Kept::text_from, &Kept::text_bytes, merged + ".txt"));
  RETURN_IF_ERROR(
      WriteLines(pairs, kept, ".tsv", &Kept::place_from, &Kept::place_bytes, merged + ".tsv"));
  return static_cast<uint64_t>(kept.size());
}

}  // namespace satrap
