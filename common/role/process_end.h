// The end of a process that nobody has asked for: an exception of a library that nobody catches, or
// a shortage in the middle of the work (EndForWantOf, common/base/shortage.h). It is reported by
// what the process was doing, because the exception says only "std::bad_alloc" or "Resource
// temporarily unavailable", and left as an Ending (ending.h), with the kind of trouble.
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
// left). A process that lacks something exits with 75 (kExitStartAgain); after any other exception
// it aborts, for the sake of its core dump. For the main function, once.
void ReportUnexpectedEnd(Role role, int index, const std::string& ending_path);

// What the process is doing, as in "loads the rows of the cut"; each call replaces the one before.
// REQUIRES: static lifetime
void NowDoing(const char* what);

// How `index` of `role` ended by `error` while it did `doing`, as above.
Ending EndingOfException(Role role, int index, absl::string_view doing, std::exception_ptr error);

}  // namespace satrap

#endif  // SATRAP_COMMON_ROLE_PROCESS_END_H_
