#include "deploy/coordinator/members/attendance.h"

#include <algorithm>

namespace satrap {

bool Attendance::IsOverdue(int64_t now_us) const {
  return now_us - complete_us_ > limit_us_ && now_us - start_us_ > std::min(limit_us_, kComeUs);
}

}  // namespace satrap
