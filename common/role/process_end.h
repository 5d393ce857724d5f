// The unexpected end of a process: a library's exception that is not caught, or a shortage in the
// middle of the work (EndForWantOf, common/base/shortage.h). The report says what the process was
// doing, because the exception says only "std::bad_alloc" or "Resource temporarily unavailable".
// The process also leaves an Ending with the kind of the problem (ending.h).
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_PROCESS_END_H_
#define SATRAP_COMMON_ROLE_PROCESS_END_H_

#include <exception>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/control.pb.h"

namespace satrap {

// From now on an unexpected end is printed to stderr as an error, and its Ending is written to
// `ending_path`, unless that is empty. If the cause is that the process lacks a resource, it then
// exits with 75 (kExitStartAgain). After any other exception it aborts, to leave a core dump. The
// main function calls this once.
void ReportUnexpectedEnd(Role role, int index, const std::string& ending_path);

// Sets what the process is doing from now until the next call, such as "loads the rows of the cut".
// REQUIRES: static lifetime
void NowDoing(const char* what);

// The Ending for an exception `error` in the process `index` of `role`. `doing` says what the
// process was doing, as in NowDoing.
Ending EndingOfException(Role role, int index, absl::string_view doing, std::exception_ptr error);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROCESS_END_H_
