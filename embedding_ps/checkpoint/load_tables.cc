#include "embedding_ps/checkpoint/load_tables.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "embedding_ps/checkpoint/save_tables.h"

namespace satrap {
namespace {

// Reads a file from start to end and keeps track of the offset, for errors.
class RowFile {
 public:
  static absl::StatusOr<std::unique_ptr<RowFile>> Open(const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "rbe");
    struct stat status;
    if (file == nullptr || fstat(fileno(file), &status) != 0) {
      const std::string error = std::strerror(errno);
      if (file != nullptr) std::fclose(file);
      return absl::DataLossError(absl::StrCat("cannot open ", path, ": ", error));
    }
    return std::unique_ptr<RowFile>(new RowFile(path, file, static_cast<uint64_t>(status.st_size)));
  }
  ~RowFile() { std::fclose(file_); }

  // DATA_LOSS, before anything is allocated, if fewer than `size` bytes are left.
  absl::Status Read(size_t size, std::string* bytes) {
    if (size > size_bytes_ - std::min(offset_, size_bytes_)) return Damaged("the file ends early");
    bytes->resize(size);
    const size_t got = std::fread(bytes->data(), 1, size, file_);
    if (got != size) {
      return absl::DataLossError(
          absl::StrCat("cannot read ", path_, " beyond offset ", offset_,
                       ": the disk failed, or the file was truncated while it was read"));
    }
    offset_ += size;
    crc32c_ = ExtendCrc32c(crc32c_, *bytes);
    return absl::OkStatus();
  }
  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, " is damaged at offset ", offset_, ": ", what));
  }
  bool AtEnd() { return std::fgetc(file_) == EOF; }
  // Of the bytes read so far.
  uint32_t crc32c() const { return crc32c_; }

 private:
  RowFile(std::string path, FILE* file, uint64_t size_bytes)
      : path_(std::move(path)), file_(file), size_bytes_(size_bytes) {}

  const std::string path_;
  FILE* const file_;
  const uint64_t size_bytes_;
  uint64_t offset_ = 0;
  uint32_t crc32c_ = 0;
};

template <typename T>
T Get(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// Writes those rows of one block that this PS owns into `table`.
void KeepOwned(const std::string& body, size_t rows, int ps_index, int num_ps,
               EmbeddingTable* table) {
  const size_t floats = table->layout().num_floats();
  const char* values = body.data() + rows * sizeof(uint64_t);
  std::vector<uint64_t> keys;
  std::vector<float> kept;
  for (size_t i = 0; i < rows; ++i) {
    const auto key = Get<uint64_t>(body, i * sizeof(uint64_t));
    if (PsOfPartition(PartitionOf(key), num_ps) != ps_index) continue;
    keys.push_back(key);
    kept.resize(keys.size() * floats);
    std::memcpy(kept.data() + kept.size() - floats, values + i * floats * sizeof(float),
                floats * sizeof(float));
  }
  table->WriteRows(keys, kept);
}

absl::Status LoadFile(const std::string& path, const SavedFile& saved, int ps_index, int num_ps,
                      EmbeddingTable* table) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RowFile> file, RowFile::Open(path));
  std::string bytes;
  RETURN_IF_ERROR(file->Read(kRowFileHeaderBytes, &bytes));
  if (bytes.compare(0, 8, kRowFileMagic) != 0) return file->Damaged("not a file of saved rows");
  if (Get<uint32_t>(bytes, 40) != Crc32c(absl::string_view(bytes).substr(0, 40))) {
    return file->Damaged("the header's checksum does not match");
  }
  const size_t floats = table->layout().num_floats();
  if (Get<uint32_t>(bytes, 8) != saved.table() || Get<uint32_t>(bytes, 20) != floats ||
      Get<uint64_t>(bytes, 24) != TableFingerprint(table->config()) ||
      Get<uint64_t>(bytes, 32) != saved.rows()) {
    return file->Damaged("the header does not match the manifest");
  }
  uint64_t left = saved.rows();
  while (left > 0) {
    RETURN_IF_ERROR(file->Read(kRowBlockHeaderBytes, &bytes));
    const auto rows = Get<uint32_t>(bytes, 0);
    const auto crc = Get<uint32_t>(bytes, 4);
    // The checksum covers the row count, too, but can only be tested once the rows are read. Until
    // then the count is not trusted with more memory than a block of this file may take.
    if (rows == 0 || rows > left || rows > kMaxRowsPerBlock) {
      return file->Damaged("the row count of a block is out of range");
    }
    const uint32_t crc_of_count = Crc32c(absl::string_view(bytes).substr(0, sizeof(uint32_t)));
    RETURN_IF_ERROR(file->Read(rows * (sizeof(uint64_t) + floats * sizeof(float)), &bytes));
    if (ExtendCrc32c(crc_of_count, bytes) != crc) {
      return file->Damaged("the block that ends here does not match its checksum");
    }
    KeepOwned(bytes, rows, ps_index, num_ps, table);
    left -= rows;
  }
  if (!file->AtEnd()) return file->Damaged("bytes follow the last block");
  if (file->crc32c() != saved.crc32c()) {
    return absl::DataLossError(
        absl::StrCat(path, " is intact but belongs to another save: its checksum is ",
                     file->crc32c(), ", and the manifest has ", saved.crc32c()));
  }
  return absl::OkStatus();
}

absl::Status CheckSavedTable(const CheckpointManifest& manifest, const EmbeddingTable& table,
                             const std::string& directory) {
  for (const SavedTable& saved : manifest.tables()) {
    if (saved.id() != table.config().id()) continue;
    if (saved.fingerprint() == TableFingerprint(table.config())) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("table ", table.config().name(), " (id ", saved.id(), ") in ", directory,
                     " has segments, dims or optimizers that differ from this job's"));
  }
  return absl::FailedPreconditionError(absl::StrCat("the model in ", directory, " has no table ",
                                                    table.config().name(), " (id ",
                                                    table.config().id(), ")"));
}

}  // namespace

absl::Status LoadTables(const std::string& directory, int ps_index, int num_ps,
                        absl::Span<EmbeddingTable* const> tables) {
  ASSIGN_OR_RETURN(const CheckpointManifest manifest, ReadManifest(directory));
  // The model may have been saved by another number of PSs: read every file whose range overlaps
  // the partitions of this one, and keep the rows that it owns.
  for (EmbeddingTable* table : tables) {
    RETURN_IF_ERROR(CheckSavedTable(manifest, *table, directory));
    table->Clear();
    for (const SavedFile& saved : manifest.table_files()) {
      if (saved.table() != table->config().id()) continue;
      if (PsOfPartition(saved.first_partition(), num_ps) > ps_index ||
          PsOfPartition(saved.last_partition(), num_ps) < ps_index) {
        continue;
      }
      RETURN_IF_ERROR(LoadFile(directory + "/" + saved.name(), saved, ps_index, num_ps, table));
    }
  }
  return absl::OkStatus();
}

}  // namespace satrap
