// The shared memory of one block at a time. Each array is NaN at first (all bits set) and is
// followed by 64 bytes that must stay NaN. A write past its end is found when the block ends, and a
// read past its end gives NaN. With AddressSanitizer both are found immediately.
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_SHARED_MEMORY_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_SHARED_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

namespace satrap::host {

// The shared memory that a card gives to a kernel by default.
inline constexpr int64_t kSharedBytes = 48 * 1024;

class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();

  // Begins a block. The arrays of the previous block are gone.
  void Begin(int64_t dynamic_bytes);
  // The array for `site`, created by the first call. Null if it does not fit.
  void* Array(const void* site, const char* name, int64_t bytes);
  void* dynamic() { return memory_; }
  // The name of an array beyond whose end the block has written; null if there is none.
  const char* FindOverrun() const;

 private:
  struct Entry {
    const void* site;
    const char* name;
    int64_t begin, end;  // offsets; the guard follows
  };
  void* Add(const void* site, const char* name, int64_t bytes);

  const std::unique_ptr<char[]> storage_;
  char* memory_;  // storage_, aligned
  std::vector<Entry> entries_;
  int64_t used_bytes_ = 0;  // with the guards
  int64_t array_bytes_ = 0;
};

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_SHARED_MEMORY_H_
