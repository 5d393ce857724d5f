#include "common/candidates/candidate_list.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/file/durable_file.h"
#include "common/file/file_system.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// magic | count | ids | counts | XXH64 of everything before it; little-endian, 8 bytes each.
constexpr char kMagic[] = "SATRCAN1";
constexpr size_t kWord = sizeof(uint64_t);
constexpr size_t kOverheadWords = 3;

absl::string_view BytesOf(const std::vector<uint64_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * kWord};
}

uint64_t WordAt(absl::string_view bytes, size_t index) {
  uint64_t word;
  std::memcpy(&word, bytes.data() + index * kWord, kWord);
  return word;
}

// The whole file, with its hash at the end.
std::vector<uint64_t> WordsOf(const CandidateList& list) {
  CHECK(list.ids.size() == list.counts.size());
  std::vector<uint64_t> words(2 + 2 * list.size());
  std::memcpy(words.data(), kMagic, kWord);
  words[1] = list.size();
  std::copy(list.ids.begin(), list.ids.end(), words.begin() + 2);
  std::copy(list.counts.begin(), list.counts.end(),
            words.begin() + 2 + static_cast<int64_t>(list.size()));
  words.push_back(Xxh64(BytesOf(words)));
  return words;
}

}  // namespace

void CandidateList::Sort() {
  std::vector<size_t> order(size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [this](size_t a, size_t b) { return counts[a] > counts[b]; });
  CandidateList sorted;
  sorted.ids.reserve(size());
  sorted.counts.reserve(size());
  for (const size_t item : order) {
    sorted.ids.push_back(ids[item]);
    sorted.counts.push_back(counts[item]);
  }
  *this = std::move(sorted);
}

uint64_t CandidateListHash(const CandidateList& list) { return WordsOf(list).back(); }

absl::Status WriteCandidateList(const std::string& path, const CandidateList& list) {
  const std::vector<uint64_t> words = WordsOf(list);
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file, DurableFile::Create(path));
  RETURN_IF_ERROR(file->Append(BytesOf(words)));
  return file->Commit();
}

absl::StatusOr<CandidateList> ReadCandidateList(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, DiskFileSystem()));
  const size_t words = bytes.size() / kWord;
  const bool whole =
      bytes.size() % kWord == 0 && words >= kOverheadWords &&
      bytes.compare(0, kWord, kMagic) == 0 && words - kOverheadWords == 2 * WordAt(bytes, 1) &&
      WordAt(bytes, words - 1) == Xxh64(absl::string_view(bytes).substr(0, (words - 1) * kWord));
  if (!whole)
    return absl::DataLossError(absl::StrCat(path, " is damaged, or is not a list of candidates"));
  CandidateList list;
  const size_t count = WordAt(bytes, 1);
  for (std::vector<uint64_t>* column : {&list.ids, &list.counts}) {
    column->resize(count);
    const size_t begin = column == &list.ids ? 2 : 2 + count;
    if (count > 0) std::memcpy(column->data(), bytes.data() + begin * kWord, count * kWord);
  }
  return list;
}

}  // namespace satrap
