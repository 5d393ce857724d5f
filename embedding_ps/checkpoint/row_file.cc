#include "embedding_ps/checkpoint/row_file.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// The number of header bytes that the header's checksum covers.
constexpr size_t kCheckedHeaderBytes = 32;

// Appends the bytes of `value`. The formats are little-endian, as are all supported machines.
template <typename T>
void Put(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T Get(absl::Span<const char> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <typename T>
absl::string_view BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string HeaderOf(const EmbeddingTable& table, uint32_t first, uint32_t last) {
  std::string bytes(kRowFileMagic, 8);
  Put<uint32_t>(table.config().id(), &bytes);
  Put(first, &bytes);
  Put(last, &bytes);
  Put<uint32_t>(table.layout().num_floats(), &bytes);
  Put(TableFingerprint(table.config()), &bytes);
  Put(Crc32c(bytes), &bytes);
  bytes.resize(kRowFileHeaderBytes, '\0');
  return bytes;
}

// Reads a file from an offset on. Keeps the current offset, for error messages.
class Input {
 public:
  static absl::StatusOr<Input> Open(const std::string& path, uint64_t offset,
                                    FileSystem* file_system) {
    absl::StatusOr<std::unique_ptr<ReadableFile>> file = file_system->Open(path);
    absl::Status status = file.status();
    if (status.ok() && offset > 0) status = (*file)->Skip(offset);
    if (status.ok()) return Input(path, *std::move(file), offset);
    return absl::DataLossError(absl::StrCat("cannot open ", path, ": ", status.message()));
  }

  // Reads the next `size` bytes. DATA_LOSS, before anything is allocated, if fewer are left.
  // `*bytes` is valid until the next call.
  absl::Status Read(size_t size, absl::Span<const char>* bytes) {
    const uint64_t size_bytes = file_->size_bytes();
    if (size > size_bytes - std::min(offset_, size_bytes)) return Damaged("the file ends early");
    if (buffer_.size() < size) buffer_.resize(size);
    const absl::StatusOr<size_t> got = file_->Read(absl::MakeSpan(buffer_).first(size));
    if (!got.ok() || *got != size) {
      return absl::DataLossError(
          absl::StrCat("cannot read ", path_, " beyond offset ", offset_,
                       ": the disk failed, or the file was truncated while it was read",
                       got.ok() ? "" : absl::StrCat(" (", got.status().message(), ")")));
    }
    offset_ += size;
    *bytes = absl::MakeConstSpan(buffer_).first(size);
    crc32c_ = ExtendCrc32c(crc32c_, {bytes->data(), bytes->size()});
    return absl::OkStatus();
  }
  absl::Status Damaged(absl::string_view what) const {
    return absl::DataLossError(absl::StrCat(path_, " is damaged at offset ", offset_, ": ", what));
  }
  absl::Status DamagedIf(bool damaged, absl::string_view what) const {
    return damaged ? Damaged(what) : absl::OkStatus();
  }
  bool AtEnd() const { return offset_ == file_->size_bytes(); }
  uint64_t offset() const { return offset_; }
  const std::string& path() const { return path_; }
  // The checksum of the bytes read so far.
  uint32_t crc32c() const { return crc32c_; }

 private:
  Input(std::string path, std::unique_ptr<ReadableFile> file, uint64_t offset)
      : path_(std::move(path)), file_(std::move(file)), offset_(offset) {}

  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::vector<char> buffer_;  // aligned for any number
  uint64_t offset_;
  uint32_t crc32c_ = 0;
};

absl::Status CheckHeader(absl::Span<const char> header, const SavedFile& saved,
                         const RowFormat& format, const Input& file) {
  const absl::string_view bytes(header.data(), header.size());
  RETURN_IF_ERROR(file.DamagedIf(bytes.substr(0, 8) != kRowFileMagic, "not a file of saved rows"));
  RETURN_IF_ERROR(file.DamagedIf(
      Get<uint32_t>(header, kCheckedHeaderBytes) != Crc32c(bytes.substr(0, kCheckedHeaderBytes)),
      "the header's checksum does not match"));
  const bool matches = Get<uint32_t>(header, 8) == saved.table() &&
                       Get<uint32_t>(header, 12) == saved.first_partition() &&
                       Get<uint32_t>(header, 16) == saved.last_partition() &&
                       Get<uint32_t>(header, 20) == static_cast<uint32_t>(format.num_floats) &&
                       Get<uint64_t>(header, 24) == format.fingerprint;
  return file.DamagedIf(!matches, "the header does not match the manifest");
}

// Whether `keys` ascend and, if `any_before`, are all above `before`.
bool Ascend(absl::Span<const uint64_t> keys, bool any_before, uint64_t before) {
  if (any_before && keys[0] <= before) return false;
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] <= keys[i - 1]) return false;
  }
  return true;
}

}  // namespace

std::string RowFileName(uint32_t table, int first_partition, int last_partition) {
  return absl::StrFormat("table_%d_partitions_%04d_%04d.rows", table, first_partition,
                         last_partition);
}

RowFileWriter::RowFileWriter(std::string name, std::unique_ptr<DurableFile> file)
    : name_(std::move(name)), file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<RowFileWriter>> RowFileWriter::Create(const std::string& name,
                                                                     const std::string& directory,
                                                                     FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<DurableFile> file,
                   DurableFile::Create(absl::StrCat(directory, "/", name), file_system));
  return std::unique_ptr<RowFileWriter>(new RowFileWriter(name, std::move(file)));
}

absl::Status RowFileWriter::BeginPart(const EmbeddingTable& table, int first_partition,
                                      int last_partition) {
  if (!parts_.empty()) RETURN_IF_ERROR(EndPart());
  SavedFile saved;
  saved.set_name(name_);
  saved.set_table(table.config().id());
  saved.set_first_partition(static_cast<uint32_t>(first_partition));
  saved.set_last_partition(static_cast<uint32_t>(last_partition));
  parts_.push_back(std::move(saved));
  return file_->Append(
      HeaderOf(table, parts_.back().first_partition(), parts_.back().last_partition()));
}

absl::Status RowFileWriter::Append(absl::Span<const uint64_t> keys, absl::Span<const float> rows) {
  const size_t num_floats = rows.size() / keys.size();
  for (size_t i = 0; i < keys.size(); ++i) {
    // The digest is a sum over rows, so that it does not depend on how rows are distributed over
    // files and PSs.
    rows_digest_ += Xxh64(BytesOf(rows.subspan(i * num_floats, num_floats)), keys[i]);
  }
  parts_.back().set_rows(parts_.back().rows() + keys.size());
  std::string head;
  Put<uint32_t>(static_cast<uint32_t>(keys.size()), &head);
  Put(ExtendCrc32c(ExtendCrc32c(Crc32c(head), BytesOf(keys)), BytesOf(rows)), &head);
  RETURN_IF_ERROR(file_->Append(head));
  RETURN_IF_ERROR(file_->Append(BytesOf(keys)));
  return file_->Append(BytesOf(rows));
}

absl::Status RowFileWriter::EndPart() {
  SavedFile& part = parts_.back();
  std::string rows, end;
  Put<uint64_t>(part.rows(), &rows);
  Put<uint32_t>(0, &end);
  Put(ExtendCrc32c(Crc32c(end), rows), &end);
  RETURN_IF_ERROR(file_->Append(end + rows));
  part.set_bytes(file_->size_bytes() - part_begins_);
  part.set_crc32c(file_->TakeCrc32c());
  part.set_rows_digest(rows_digest_);
  part_begins_ = file_->size_bytes();
  rows_digest_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SavedFile>> RowFileWriter::Commit() {
  if (!parts_.empty()) RETURN_IF_ERROR(EndPart());
  RETURN_IF_ERROR(file_->Commit());
  return parts_;
}

RowFormat RowFormatOf(const EmbeddingTable& table) {
  return {TableFingerprint(table.config()), static_cast<size_t>(table.layout().num_floats())};
}

absl::Status ReadRowFile(
    const std::string& directory, const SavedFile& saved, const PartOfFile& where,
    const RowFormat& format, FileSystem* file_system,
    absl::FunctionRef<void(absl::Span<const uint64_t> keys, absl::Span<const float> rows)> visit) {
  ASSIGN_OR_RETURN(Input file, Input::Open(absl::StrCat(directory, "/", saved.name()), where.offset,
                                           file_system));
  absl::Span<const char> bytes;
  RETURN_IF_ERROR(file.Read(kRowFileHeaderBytes, &bytes));
  RETURN_IF_ERROR(CheckHeader(bytes, saved, format, file));
  const size_t floats = format.num_floats;
  uint64_t num_rows = 0, last_key = 0;
  while (true) {
    RETURN_IF_ERROR(file.Read(kRowBlockHeaderBytes, &bytes));
    const auto n = Get<uint32_t>(bytes, 0);
    const auto crc = Get<uint32_t>(bytes, 4);
    const uint32_t crc_of_count = Crc32c({bytes.data(), sizeof(uint32_t)});
    // The checksum also covers the row count, but it can only be verified after the rows are read.
    // Until then, an implausible count must not cause more memory to be allocated than a block may
    // take.
    RETURN_IF_ERROR(file.DamagedIf(n > kMaxRowsPerBlock || n > saved.rows() - num_rows,
                                   "the row count of a block is out of range"));
    RETURN_IF_ERROR(file.Read(
        n == 0 ? sizeof(uint64_t) : n * (sizeof(uint64_t) + floats * sizeof(float)), &bytes));
    RETURN_IF_ERROR(file.DamagedIf(ExtendCrc32c(crc_of_count, {bytes.data(), bytes.size()}) != crc,
                                   "the block that ends here does not match its checksum"));
    const auto* const words = reinterpret_cast<const uint64_t*>(bytes.data());
    if (n == 0) {
      RETURN_IF_ERROR(file.DamagedIf(words[0] != num_rows || num_rows != saved.rows(),
                                     "the number of rows differs from the one in the file's last "
                                     "block or in the manifest"));
      break;
    }
    const absl::Span<const uint64_t> keys(words, n);
    RETURN_IF_ERROR(
        file.DamagedIf(!Ascend(keys, num_rows > 0, last_key) ||
                           PartitionOf(keys.front()) < static_cast<int>(saved.first_partition()) ||
                           PartitionOf(keys.back()) > static_cast<int>(saved.last_partition()),
                       "the keys do not ascend within the file's partitions"));
    last_key = keys.back();
    num_rows += n;
    visit(keys, {reinterpret_cast<const float*>(words + n), n * floats});
  }
  if (where.is_last) {
    RETURN_IF_ERROR(file.DamagedIf(!file.AtEnd(), "bytes follow the end"));
  } else {
    // If this part had another size, the parts after it would begin at other offsets.
    RETURN_IF_ERROR(file.DamagedIf(file.offset() - where.offset != saved.bytes(),
                                   "the part's size differs from the size in the manifest"));
  }
  if (file.crc32c() != saved.crc32c()) {
    return absl::DataLossError(
        absl::StrCat(file.path(), " is intact but belongs to another save: its checksum is ",
                     file.crc32c(), ", but the manifest has ", saved.crc32c()));
  }
  return absl::OkStatus();
}

}  // namespace satrap
