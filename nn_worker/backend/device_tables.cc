#include "nn_worker/backend/device_tables.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "nn_worker/backend/tensor.h"

namespace satrap {
namespace {

constexpr int64_t kFirstBytes = 1 << 18;

int64_t Padded(int64_t bytes) { return PaddedStride(DType::kU8, bytes); }

}  // namespace

void DeviceTables::AppendWords(const char* data, size_t bytes, std::vector<int64_t>* words) {
  if (bytes == 0) return;
  const size_t before = words->size();
  words->resize(before + (bytes + 7) / 8);
  std::memcpy(&(*words)[before], data, bytes);
}

const void* DeviceTables::TableBytes(const char* data, int64_t bytes) {
  if (bytes == 0) return nullptr;
  std::string key(data, bytes);
  const auto found = tables_.find(key);
  if (found != tables_.end()) return found->second;
  if (used_bytes_ + bytes > bytes_) {
    // Written over from the beginning, in order with what reads the tables.
    if (!tables_.empty()) ++epoch_;
    tables_.clear();
    used_bytes_ = 0;
    if (bytes > bytes_) {
      const int64_t wanted = std::max(kFirstBytes, Padded(4 * bytes));
      const auto memory = allocate_(wanted);
      CHECK_OK(memory.status());
      meter_->CountLists(wanted);
      memory_ = static_cast<char*>(*memory);
      bytes_ = wanted;
    }
  }
  char* const table = memory_ + used_bytes_;
  used_bytes_ += Padded(bytes);
  copy_(data, table, bytes);
  tables_.emplace(std::move(key), table);
  return table;
}

}  // namespace satrap
