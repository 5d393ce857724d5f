// RETURN_IF_ERROR(expression);           returns the status of `expression` unless it is OK
// ASSIGN_OR_RETURN(auto x, expression);  assigns the value of a StatusOr, or returns its status

#ifndef SATRAP_COMMON_BASE_STATUS_MACROS_H_
#define SATRAP_COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define RETURN_IF_ERROR(expression)                                           \
  do {                                                                        \
    if (::absl::Status status_ = (expression); !status_.ok()) return status_; \
  } while (false)

#define ASSIGN_OR_RETURN_CONCAT_(a, b) a##b
#define ASSIGN_OR_RETURN_NAME_(a, b) ASSIGN_OR_RETURN_CONCAT_(a, b)
#define ASSIGN_OR_RETURN(lhs, expression) \
  ASSIGN_OR_RETURN_(ASSIGN_OR_RETURN_NAME_(status_or_, __COUNTER__), lhs, expression)
// No parentheses around `lhs`, because it may be a declaration.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define ASSIGN_OR_RETURN_(result, lhs, expression) \
  auto result = (expression);                      \
  if (!result.ok()) return result.status();        \
  lhs = std::move(result).value()
// NOLINTEND(bugprone-macro-parentheses)

#endif  // SATRAP_COMMON_BASE_STATUS_MACROS_H_
