// Collects everything that is wrong with a configuration, so that a user sees all of it at once.
//
// Thread-compatible.

#ifndef SATRAP_COMMON_BASE_PROBLEMS_H_
#define SATRAP_COMMON_BASE_PROBLEMS_H_

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace satrap {

class Problems {
 public:
  // Adds "PATH: WHAT".
  void Add(absl::string_view path, absl::string_view what) {
    lines_.push_back(absl::StrCat(path, ": ", what));
  }

  // Adds "PATH: must be in [low, high], got VALUE" unless `value` is in that range. NaN is in no
  // range.
  template <typename T>
  void Range(absl::string_view path, T value, T low, T high) {
    if (value >= low && value <= high) return;
    Add(path, absl::StrCat("must be in [", low, ", ", high, "], got ", value));
  }

  // Adds "PATH: must be finite, got VALUE" unless it is.
  void Finite(absl::string_view path, double value) {
    if (std::isfinite(value)) return;
    Add(path, absl::StrCat("must be finite, got ", value));
  }

  // Adds "PATH: must be finite and positive, got VALUE" unless it is.
  void Positive(absl::string_view path, double value) {
    if (std::isfinite(value) && value > 0) return;
    Add(path, absl::StrCat("must be finite and positive, got ", value));
  }

  // Removes every problem that `known` also has, with the same path and value.
  void Drop(const Problems& known) {
    lines_.erase(std::remove_if(lines_.begin(), lines_.end(),
                                [&](const std::string& line) {
                                  return std::find(known.lines_.begin(), known.lines_.end(),
                                                   line) != known.lines_.end();
                                }),
                 lines_.end());
  }

  // OK, or INVALID_ARGUMENT with the problem that was added first. For factories: their callers
  // have already validated the job, so one problem is enough.
  absl::Status First() const {
    if (lines_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(lines_.front());
  }

  // OK, or INVALID_ARGUMENT with one line per problem, in the order in which they were added.
  absl::Status ToStatus() const {
    if (lines_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("  ", absl::StrJoin(lines_, "\n  ")));
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_PROBLEMS_H_
