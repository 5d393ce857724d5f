// Measures how long a run has lacked members. In pods the time is counted across generations: the
// log shows when the first generation without all members began
// (common/checkpoint/entries/incomplete_since.h).
//
// A generation is overdue once the run has lacked members for longer than the limit. But each
// generation first waits kComeUs, so that running processes can register; each process asks for a
// place every second. A generation that has had all its members for kComeUs is complete, and its
// coordinator records this in the log.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_MEMBERS_ATTENDANCE_H_
#define SATRAP_DEPLOY_COORDINATOR_MEMBERS_ATTENDANCE_H_

#include <cstdint>

namespace satrap {

class Attendance {
 public:
  static constexpr int64_t kComeUs = 5000000;

  // The generation begins at `start_us`. At that time the run has already lacked members for
  // `lacked_us`; it may lack them for `limit_us` in all.
  Attendance(int64_t start_us, int64_t lacked_us, int64_t limit_us)
      : start_us_(start_us),
        limit_us_(limit_us),
        complete_us_(start_us - lacked_us),
        lacking_us_(start_us) {}

  // Call regularly, and before a place becomes free. `complete`: all members are there.
  void Note(bool complete, int64_t now_us) { (complete ? complete_us_ : lacking_us_) = now_us; }
  // REQUIRES: Note was called with this time
  bool IsOverdue(int64_t now_us) const;
  bool IsComplete(int64_t now_us) const { return now_us - lacking_us_ >= kComeUs; }

 private:
  const int64_t start_us_;
  const int64_t limit_us_;
  int64_t complete_us_;  // when all members were there last
  int64_t lacking_us_;   // when one was missing last
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_MEMBERS_ATTENDANCE_H_
