// CHECK is for what cannot happen in a correct program: it prints the condition, file and line to
// stderr and aborts. Errors that a peer, a file or a user can cause are returned as an
// absl::Status.
//
//   CHECK(rows > 0) << "table " << name;

#ifndef SATRAP_COMMON_BASE_CHECK_H_
#define SATRAP_COMMON_BASE_CHECK_H_

#include <sstream>

namespace satrap::internal {

// Aborts in its destructor, after the message has been streamed in.
class CheckFailure {
 public:
  CheckFailure(const char* condition, const char* file, int line);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both arms of CHECK's conditional the type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace satrap::internal

// The expansion has no parentheses around it, because `<<` may follow.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define CHECK(condition)                        \
  (condition) ? (void)0                         \
              : ::satrap::internal::Voidify() & \
                    ::satrap::internal::CheckFailure(#condition, __FILE__, __LINE__).stream()
// NOLINTEND(bugprone-macro-parentheses)
#define CHECK_OK(expression) CHECK_OK_(expression, __COUNTER__)
#define CHECK_OK_(expression, n) CHECK_OK_NAMED_(expression, n)
#define CHECK_OK_NAMED_(expression, n)                   \
  if (const auto& check_status_##n = (expression); true) \
  CHECK(check_status_##n.ok()) << ::satrap::internal::StatusText(check_status_##n)

#include "absl/status/status.h"

namespace satrap::internal {
inline std::string StatusText(const absl::Status& status) { return status.ToString(); }
}  // namespace satrap::internal

#endif  // SATRAP_COMMON_BASE_CHECK_H_
