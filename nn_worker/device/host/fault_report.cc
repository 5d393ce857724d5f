#include "nn_worker/device/host/fault_report.h"

#include <signal.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string>

#include "common/base/check.h"
#include "nn_worker/device/host/block_runner.h"
#include "nn_worker/device/host/guarded_memory.h"
#include "nn_worker/device/host/kernel_thread.h"

namespace satrap::host {
namespace {

// Global, because a signal handler has no argument for it.
std::array<std::atomic<const GuardedMemory*>, 256> watched;
struct sigaction handler_before;

// Bit 1 of the processor's error code tells whether the access was a write.
bool IsWrite(const void* context) {
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

// This runs in the thread that faulted, during a plain access to device memory. So the thread holds
// no lock of the allocator, and the handler may compose a message.
void OnFault(int signal, siginfo_t* info, void* context) {
  // The signal was sent by a process and not caused by an access. Returning would not make an
  // instruction fault again, so the signal is raised again. It is blocked until this handler
  // returns; then the previous handler gets it.
  if (info->si_code <= 0) {
    sigaction(signal, &handler_before, nullptr);
    raise(signal);
    return;
  }
  // Opens only memory of the kernel's own device, because another device may be destroyed
  // meanwhile.
  if (current_thread != nullptr) {
    const int interrupted_errno = errno;
    const bool opened = current_thread->block->memory->Open(info->si_addr);
    errno = interrupted_errno;
    if (opened) return;  // the access is made again
  }
  for (const std::atomic<const GuardedMemory*>& entry : watched) {
    const GuardedMemory* const memory = entry.load();
    if (memory == nullptr || !memory->Reserves(info->si_addr)) continue;
    const std::string access =
        (IsWrite(context) ? " wrote " : " read ") + memory->Describe(info->si_addr);
    const bool kernels_stay_within_device_memory = current_thread == nullptr;
    CHECK(kernels_stay_within_device_memory) << DescribeThread(*current_thread) << access;
    const bool host_uses_copies = false;
    CHECK(host_uses_copies) << "the host" << access
                            << " of the device; use CopyIn and CopyOut (device_stream.h)";
  }
  // After this the same instruction faults again, and the previous handler gets the signal.
  sigaction(signal, &handler_before, nullptr);
}

void InstallHandler() {
  struct sigaction action = {};
  action.sa_sigaction = &OnFault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  CHECK(sigaction(SIGSEGV, &action, &handler_before) == 0);
}

}  // namespace

void AddFaultReport(const GuardedMemory* memory) {
  [[maybe_unused]] static const bool installed = (InstallHandler(), true);
  for (std::atomic<const GuardedMemory*>& entry : watched) {
    const GuardedMemory* none = nullptr;
    if (entry.compare_exchange_strong(none, memory)) return;
  }
}

void RemoveFaultReport(const GuardedMemory* memory) {
  for (std::atomic<const GuardedMemory*>& entry : watched) {
    const GuardedMemory* same = memory;
    if (entry.compare_exchange_strong(same, nullptr)) return;
  }
}

}  // namespace satrap::host
