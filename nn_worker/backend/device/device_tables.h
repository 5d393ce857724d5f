// Tables are small arrays of the host, mostly lists of tensors, that an operation's kernels read
// from device memory. Equal bytes are copied only once and then found again, so a step that repeats
// an earlier one copies nothing.
//
// Lists of the network are the same in every step. When they fill their memory, more is allocated,
// up to kMostBytes, and the old lists are kept. When no more can be allocated, the memory is
// overwritten from its beginning. The memory for lists of parts is always overwritten in this way,
// because these lists do not repeat.
//
// If memory runs out, a CHECK fails, because operations return no error. Therefore the memory that
// a job's lists need is reserved in advance. Thread-compatible; used only by the thread of the
// operations.

#ifndef SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TABLES_H_
#define SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TABLES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nn_worker/device/metered_device.h"

namespace satrap {

class DeviceTables {
 public:
  // The maximum size of all lists of the network together.
  static constexpr int64_t kMostBytes = 16 << 20;

  // `allocate` returns device memory that outlives this object. `copy` enqueues a copy into it, in
  // order with the operations that read the tables. The host may change the source as soon as
  // `copy` returns.
  using Allocate = std::function<absl::StatusOr<void*>(int64_t bytes)>;
  using Copy = std::function<void(const void* host, void* device, int64_t bytes)>;
  DeviceTables(ListKind kind, Allocate allocate, Copy copy, DeviceMeter* meter)
      : kind_(kind), allocate_(std::move(allocate)), copy_(std::move(copy)), meter_(meter) {}

  // Allocates at least this much memory. RESOURCE_EXHAUSTED. REQUIRES: Table has not been called
  absl::Status Reserve(int64_t bytes);

  // A copy of `values` in device memory. Operations enqueued before the next call of Table may read
  // it. Later operations may read it until the epoch changes. Bytes between the fields of T should
  // be 0, or an equal table may not be found again.
  template <typename T>
  const T* Table(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    return static_cast<const T*>(TableBytes(reinterpret_cast<const char*>(values.data()),
                                            static_cast<int64_t>(values.size() * sizeof(T))));
  }

  template <typename... T>  // several lists at once, since another call may overwrite the first
  std::tuple<const T*...> Tables(const std::vector<T>&... lists) {
    static_assert(((std::is_trivially_copyable_v<T> && alignof(T) <= 8) && ...));
    std::vector<int64_t> words;
    (AppendWords(reinterpret_cast<const char*>(lists.data()), lists.size() * sizeof(T), &words),
     ...);
    const int64_t* next = Table(words);
    return {Advance<T>(&next, lists.size())...};
  }

  // Changes when tables are overwritten. Until then all tables that were returned stay valid.
  int64_t epoch() const { return epoch_; }

 private:
  static void AppendWords(const char* data, size_t bytes, std::vector<int64_t>* words);
  template <typename T>  // the list at *next; moves *next past it
  static const T* Advance(const int64_t** next, size_t count) {
    const auto* const list = reinterpret_cast<const T*>(*next);
    *next += (count * sizeof(T) + 7) / 8;
    return list;
  }
  const void* TableBytes(const char* data, int64_t bytes);
  void MakeRoom(int64_t bytes);
  absl::Status Grow(int64_t bytes);

  const ListKind kind_;
  const Allocate allocate_;
  const Copy copy_;
  DeviceMeter* const meter_;
  char* memory_ = nullptr;              // where the next table goes
  int64_t bytes_ = 0, used_bytes_ = 0;  // of `memory_`
  int64_t held_bytes_ = 0;              // of all memory with tables, including `memory_`
  bool refused_ = false;                // no more memory can be allocated
  int64_t epoch_ = 0;
  std::unordered_map<std::string, const void*> tables_;  // by their bytes
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_DEVICE_DEVICE_TABLES_H_
