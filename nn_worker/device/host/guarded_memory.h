// The "device" memory of the host's device: a separate range of addresses, closed to every access.
// A copy calls Open for its allocation. A kernel's first access to an allocation faults, and the
// fault handler opens the allocation (fault_report.h), because the arguments of a kernel do not
// show which allocations it will access. Opening and closing all allocations for each kernel would
// take nine tenths of the time of tests.
//
// An allocation is surrounded by pages that stay closed. It ends where a page ends, except for up
// to 63 bytes by which its size is rounded up. These bytes, and the 64 bytes in front of the
// allocation, must stay NaN: FindOverrun finds a write. Under AddressSanitizer they are poisoned,
// so a read is found as well. Addresses are never used again, so a use after Free is always a
// fault.
//
// Any other fault in this range aborts. The message names the accessed bytes and either the thread
// and kernel that accessed them, or the host. Faults elsewhere go to the previous handler.
//
// An open allocation is open for the whole process: a host thread that accesses it while another
// thread runs operations on it is not detected.
//
// Thread-compatible; the threads of a kernel may call Open at the same time.

#ifndef SATRAP_NN_WORKER_DEVICE_HOST_GUARDED_MEMORY_H_
#define SATRAP_NN_WORKER_DEVICE_HOST_GUARDED_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace satrap::host {

class GuardedMemory {
 public:
  // Allocate returns null if more than `capacity_bytes` would be in use.
  explicit GuardedMemory(int64_t capacity_bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Memory aligned to 64, whose bytes are all 0xff, which is NaN in every format. Null if it does
  // not fit.
  void* Allocate(int64_t bytes);
  void Free(void* data);

  // Opens the allocation whose pages contain `p`, until CloseAll; false if there is none.
  bool Open(const void* p);
  void CloseAll();
  // Whether [p, p + bytes) is within one allocation.
  bool Holds(const void* p, int64_t bytes) const;
  // Describes what a write in front of or behind an open allocation has changed; "" if there was
  // none. Closed allocations cannot have been written to.
  std::string FindOverrun() const;
  // Describes the position of an address relative to the allocations.
  std::string Describe(const void* p) const;
  bool Reserves(const void* p) const { return p >= begin_ && p < begin_ + kReservedBytes; }

 private:
  static constexpr int64_t kReservedBytes = int64_t{1} << 36;

  struct Allocation {
    int64_t bytes;
    char* pages;  // from here to pages_end the memory is opened
    char* pages_end;
    bool freed = false;
    bool open = false;  // set by Open, which several threads may call, as an atomic
  };

  const int64_t capacity_bytes_;
  char* const begin_;
  char* next_;  // memory from here on has never been allocated
  int64_t used_bytes_ = 0;
  std::map<const char*, Allocation> allocations_;  // freed ones too, for Describe
  // Only the first num_open_ elements are in use. It has as many elements as allocations_, so that
  // handling a fault allocates nothing.
  std::vector<Allocation*> open_;
  std::atomic<size_t> num_open_ = 0;
};

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_GUARDED_MEMORY_H_
