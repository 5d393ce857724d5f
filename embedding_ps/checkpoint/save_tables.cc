#include "embedding_ps/checkpoint/save_tables.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/durable_file.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// Appends the bytes of `value`. The formats are little-endian, as is every machine this runs on.
template <typename T>
void Put(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string HeaderOf(const EmbeddingTable& table, uint32_t first, uint32_t last, uint64_t rows) {
  std::string bytes(kRowFileMagic, 8);
  Put<uint32_t>(table.config().id(), &bytes);
  Put(first, &bytes);
  Put(last, &bytes);
  Put<uint32_t>(table.layout().num_floats(), &bytes);
  Put(TableFingerprint(table.config()), &bytes);
  Put(rows, &bytes);
  Put(Crc32c(bytes), &bytes);
  bytes.resize(kRowFileHeaderBytes, '\0');
  return bytes;
}

absl::Status AppendBlock(const EmbeddingTable& table, absl::Span<const uint64_t> keys,
                         DurableFile* file, uint64_t* rows_digest) {
  // A block at a time: the copy of the rows is short, and the shards are locked only while it is
  // made.
  const size_t floats = table.layout().num_floats();
  std::string body(keys.size() * (sizeof(uint64_t) + floats * sizeof(float)), '\0');
  std::memcpy(body.data(), keys.data(), keys.size() * sizeof(uint64_t));
  std::vector<float> rows(keys.size() * floats);
  table.ReadRows(keys, absl::MakeSpan(rows));
  const size_t row_bytes = floats * sizeof(float);
  for (size_t i = 0; i < keys.size(); ++i) {
    // A sum over rows, so that it does not depend on how rows are spread over files and PSs.
    const auto* row = reinterpret_cast<const char*>(rows.data() + i * floats);
    *rows_digest += Xxh64(absl::string_view(row, row_bytes), keys[i]);
  }
  std::memcpy(body.data() + keys.size() * sizeof(uint64_t), rows.data(),
              rows.size() * sizeof(float));
  std::string head;
  Put<uint32_t>(static_cast<uint32_t>(keys.size()), &head);
  Put(ExtendCrc32c(Crc32c(head), body), &head);
  RETURN_IF_ERROR(file->Append(head));
  return file->Append(body);
}

absl::StatusOr<SavedFile> SaveRange(const EmbeddingTable& table, int first, int last,
                                    const std::vector<uint64_t>& keys,
                                    const std::string& directory) {
  SavedFile saved;
  saved.set_name(
      absl::StrFormat("table_%d_partitions_%04d_%04d.rows", table.config().id(), first, last));
  ASSIGN_OR_RETURN(const std::unique_ptr<DurableFile> file,
                   DurableFile::Create(directory + "/" + saved.name()));
  RETURN_IF_ERROR(file->Append(HeaderOf(table, first, last, keys.size())));
  uint64_t rows_digest = 0;
  for (size_t from = 0; from < keys.size(); from += kMaxRowsPerBlock) {
    const absl::Span<const uint64_t> block =
        absl::MakeConstSpan(keys).subspan(from, kMaxRowsPerBlock);
    RETURN_IF_ERROR(AppendBlock(table, block, file.get(), &rows_digest));
  }
  RETURN_IF_ERROR(file->Commit());
  saved.set_rows(keys.size());
  saved.set_bytes(file->size_bytes());
  saved.set_crc32c(file->crc32c());
  saved.set_rows_digest(rows_digest);
  saved.set_table(table.config().id());
  saved.set_first_partition(first);
  saved.set_last_partition(last);
  return saved;
}

}  // namespace

absl::StatusOr<std::vector<SavedFile>> SaveTable(const EmbeddingTable& table, int ps_index,
                                                 int num_ps, const std::string& directory) {
  std::vector<SavedFile> files;
  // Files end at multiples of kPartitionsPerFile and where the owner changes, so that no file holds
  // rows of two PSs.
  int first = 0;
  while (first < kNumPartitions) {
    const int owner = PsOfPartition(first, num_ps);
    int last = first;
    while (last + 1 < kNumPartitions && PsOfPartition(last + 1, num_ps) == owner &&
           (last + 1) % kPartitionsPerFile != 0) {
      ++last;
    }
    if (owner == ps_index) {
      const std::vector<uint64_t> keys = table.Keys(first, last);
      if (!keys.empty()) {
        ASSIGN_OR_RETURN(SavedFile file, SaveRange(table, first, last, keys, directory));
        files.push_back(std::move(file));
      }
    }
    first = last + 1;
  }
  return files;
}

}  // namespace satrap
