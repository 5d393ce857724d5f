// The resource of the machine (memory, processes and so on) that a process lacked when something
// failed. A restart helps only if another process of the machine, such as a dying process of the
// same run, still held the resource. So such a failure is treated differently from others
// (common/role/cause_table.h).
//
// Thread-safe.

#ifndef SATRAP_COMMON_BASE_SHORTAGE_H_
#define SATRAP_COMMON_BASE_SHORTAGE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace satrap {

enum class Shortage {
  kNone,
  kMemory,
  kProcesses,    // or threads: the kernel has one limit for both
  kDescriptors,  // of files and sockets
  kAddress,      // an address of this machine, such as that of a loopback interface that is down
  kMount,        // a mount whose file server answers, and that the server still knows
};

// The shortage that the errno `error` of a system call reports; kNone if it reports none. EAGAIN
// gives kProcesses. REQUIRES: if `error` is EAGAIN, it comes from starting a process or a thread
Shortage ShortageOfErrno(int error);

// Returns `status` with a mark that ShortageOf finds, whatever the message is. A status that is
// built again from code and message has no mark. REQUIRES: !status.ok()
absl::Status MarkShortage(absl::Status status, Shortage shortage);
// kNone for a status without a mark.
Shortage ShortageOf(const absl::Status& status);

// Ends the process because it cannot continue without the resource that it lacks. `what` says what
// the resource was needed for, such as memory for a table. Calls the handler, if one is set;
// otherwise prints to stderr and aborts.
[[noreturn]] void EndForWantOf(Shortage shortage, absl::string_view what);
// A handler must not return. Null removes the handler. REQUIRES: static lifetime
using ShortageHandler = void (*)(Shortage shortage, const std::string& what);
void SetShortageHandler(ShortageHandler handler);

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_SHORTAGE_H_
