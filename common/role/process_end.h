// The unexpected end of a process: an exception of a library that nobody catches, or a shortage in
// the middle of the work (EndForWantOf, common/base/shortage.h). The report says what the process
// was doing, because the exception says only "std::bad_alloc" or "Resource temporarily
// unavailable". An Ending with the kind of trouble is left, too (ending.h).
//
// Thread-safe.

#ifndef SATRAP_COMMON_ROLE_PROCESS_END_H_
#define SATRAP_COMMON_ROLE_PROCESS_END_H_

#include <exception>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/control.pb.h"

namespace satrap {

// From now on such an end is printed to stderr as an error, and left at `ending_path` (empty: not
// left). A process that lacks something exits with 75 (kExitStartAgain). After any other exception
// it aborts, to leave a core dump. The main function calls this once.
void ReportUnexpectedEnd(Role role, int index, const std::string& ending_path);

// Says what the process is doing, such as "loads the rows of the cut". Each call replaces the one
// before.
// REQUIRES: static lifetime
void NowDoing(const char* what);

// The ending of `index` of `role` by `error` while it did `doing`, as above.
Ending EndingOfException(Role role, int index, absl::string_view doing, std::exception_ptr error);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROCESS_END_H_
