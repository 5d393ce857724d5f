#include "nn_worker/backend/device/device_tables.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {
namespace {

constexpr int64_t kFirstBytes = 1 << 18;

}  // namespace

void DeviceTables::AppendWords(const char* data, size_t bytes, std::vector<int64_t>* words) {
  if (bytes == 0) return;
  const size_t before = words->size();
  words->resize(before + (bytes + 7) / 8);
  std::memcpy(&(*words)[before], data, bytes);
}

absl::Status DeviceTables::Grow(int64_t bytes) {
  ASSIGN_OR_RETURN(void* const memory, allocate_(bytes));
  held_bytes_ = kind_ == ListKind::kNetwork ? held_bytes_ + bytes : bytes;
  meter_->CountLists(kind_, bytes, held_bytes_);
  memory_ = static_cast<char*>(memory);
  bytes_ = bytes;
  used_bytes_ = 0;
  return absl::OkStatus();
}

absl::Status DeviceTables::Reserve(int64_t bytes) {
  CHECK(tables_.empty()) << "the memory to be replaced already holds tables";
  return bytes > bytes_ ? Grow(bytes) : absl::OkStatus();
}

void DeviceTables::MakeRoom(int64_t bytes) {
  if (kind_ == ListKind::kNetwork && !tables_.empty() && !refused_) {
    const int64_t wanted = std::max(2 * bytes_, PaddedBytes(4 * bytes));
    if (held_bytes_ + wanted <= kMostBytes) {
      refused_ = !Grow(wanted).ok();
      if (!refused_) return;
    }
  }
  // Overwriting is safe, because copies run in order with the operations that read the tables.
  if (!tables_.empty()) ++epoch_;
  tables_.clear();
  used_bytes_ = 0;
  if (bytes > bytes_) CHECK_OK(Grow(std::max(kFirstBytes, PaddedBytes(4 * bytes))));
}

const void* DeviceTables::TableBytes(const char* data, int64_t bytes) {
  if (bytes == 0) return nullptr;
  std::string key(data, bytes);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  if (used_bytes_ + bytes > bytes_) MakeRoom(bytes);
  char* const table = memory_ + used_bytes_;
  used_bytes_ += PaddedBytes(bytes);
  copy_(data, table, bytes);
  tables_.emplace(std::move(key), table);
  return table;
}

}  // namespace satrap
