// The "device" memory of the host's device: a range of addresses of its own, closed to every
// access. A copy opens its allocation by Open. A kernel opens one by its first access, which faults
// (fault_report.h), because the arguments of a kernel do not show what it will touch, and opening
// and closing every allocation took nine tenths of the time of tests.
//
// An allocation lies between pages that stay closed. It ends where a page ends, except for up to 63
// bytes by which its size is rounded up. These bytes, and the 64 bytes before it, must stay NaN:
// FindOverrun finds a write. Under AddressSanitizer they are poisoned, so a read is found, too.
// Addresses are never used again, so a use after Free is always a fault.
//
// A fault in this range that opens nothing prints what was touched, and by which thread of which
// kernel or by the host, and aborts. Other faults go to the handler that was there before.
//
// An allocation is open for the whole process: if a thread of the host touches it while another one
// runs operations on it, that is not detected.
//
// Thread-compatible; the threads of a kernel may call Open at once.

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
  // Fails Allocate when more than `capacity_bytes` would be in use.
  explicit GuardedMemory(int64_t capacity_bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Aligned to 64; every byte is 0xff, which is NaN in every format. Null if it does not fit.
  void* Allocate(int64_t bytes);
  void Free(void* data);

  // Opens the allocation in whose pages `p` lies, until CloseAll; false if there is none.
  bool Open(const void* p);
  void CloseAll();
  // Whether [p, p + bytes) lies within one allocation.
  bool Holds(const void* p, int64_t bytes) const;
  // Describes what a write outside of an open allocation has changed; "" if nothing. Closed
  // allocations cannot have been written.
  std::string FindOverrun() const;
  // Describes where an address lies.
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
  char* next_;  // what follows was never given out
  int64_t used_bytes_ = 0;
  std::map<const char*, Allocation> allocations_;  // freed ones too, for Describe
  // The first num_open_ elements are open. Its size is that of allocations_, so a fault allocates
  // nothing.
  std::vector<Allocation*> open_;
  std::atomic<size_t> num_open_ = 0;
};

}  // namespace satrap::host

#endif  // SATRAP_NN_WORKER_DEVICE_HOST_GUARDED_MEMORY_H_
