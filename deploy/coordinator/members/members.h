// The processes of one generation: which have registered, which send heartbeats, which are ready.
//
// A member is one process, identified by its incarnation (RegisterRequest). Of the processes that
// have registered under one index of a role, the first that sends a heartbeat is the member.
// Register alone makes no process a member, because a late copy of the call may arrive from a
// process that is dead. A heartbeat of another registered process under the same index ends the
// generation: either the member died and its state is lost, or two processes were started with one
// index, and it is not known which of these happened.
//
// In pods a process names its holder, the pod that it runs in. If a pod was deleted by force, or
// its node was cut off, a process in a new pod may have the same index as a member that still
// lives: it is the member's twin. While the member sends heartbeats, the twin must wait. It is told
// so by the answer to Register or, if both have registered before either sends a heartbeat, by the
// answer to its first heartbeat. A process that was told so by a heartbeat's answer never becomes
// the member: it gets the same answer again if it asks again, and another process is started in its
// place. Once the member has been silent for kSpareSilenceUs, the twin may take its place. Two
// processes of one holder are not twins, because a pod has one process at a time.
//
// A process that was started for an earlier generation but registers only in this one is not
// distinguished from the processes of this generation: it has no state yet, and can serve as well.
// If another process has registered under the same index, that costs one restart; both are told,
// and in the next generation each registers only once. This cannot happen with the local launcher,
// which starts a generation only when every process of the previous one is dead.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_MEMBERS_MEMBERS_H_
#define SATRAP_DEPLOY_COORDINATOR_MEMBERS_MEMBERS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr int64_t kSpareSilenceUs = 3000000;

// What a heartbeat says about its sender. At most one of these is set.
struct Standing {
  absl::optional<Ending> conflict;  // a second process under its index: the generation's end
  absl::optional<Ending> spare;     // no member, and has to wait: why
};

// `now_us` leaves out the time for which this process was suspended since the last FindSilent,
// because members do not count as silent in that time.
class Members {
 public:
  explicit Members(const JobConfig& job);

  // FAILED_PRECONDITION if the job has no such role and index; INVALID_ARGUMENT without an
  // incarnation. A process may register repeatedly. If one that names its holder has no place now,
  // it is not registered, and `*why_wait` says why.
  absl::Status Register(const RegisterRequest& request, int64_t now_us, std::string* why_wait);

  // Processes a heartbeat. FAILED_PRECONDITION if the sender has not registered. `may_replace`: the
  // generation does not train yet, so a spare may take the place of a silent member without ending
  // the generation.
  absl::StatusOr<Standing> Heartbeat(const HeartbeatRequest& request, int64_t now_us,
                                     bool may_replace);

  // Returns whether a failure is a member's, that is, whether its sender is the member of its
  // index. If nobody has sent a heartbeat under that index yet, this call makes a registered sender
  // without a holder the member.
  bool IsOfMember(const FailRequest& request, int64_t now_us);

  // Returns the generation's end if a member has been silent for longer than `timeout_us`. First
  // subtracts from every silence `stall_us`, the time in which this process could not receive
  // heartbeats.
  absl::optional<Ending> FindSilent(int64_t now_us, int64_t stall_us, int64_t timeout_us);

  // Free the place of a member that leaves, or the places of all members that have been silent for
  // longer than `timeout_us`. Before training begins, another process may take such a place.
  void Free(Role role, uint32_t index);
  void FreeSilent(int64_t now_us, int64_t timeout_us);

  // "data_loader 0, embedding_ps 1": the members that were never heard from.
  std::string Unheard() const;
  bool AllReady() const;

  // Call when the member has been told how the run continues, or exits without being told.
  void SetTold(Role role, uint32_t index);
  // Whether every member that still sends heartbeats, and every process that registered a moment
  // ago, has been told how the run continues.
  bool AllTold() const;

  // Adds the members to the answer. REQUIRES: AllReady()
  void AddTo(HeartbeatAnswer* answer) const;
  void AddTo(StatusAnswer* answer, int64_t now_us) const;
  // The expected number of samples in an epoch: the mean of the loaders' estimates, or 0 if there
  // is none.
  uint64_t ExpectedTrainSamples() const;

 private:
  struct Process {
    Member member;
    uint64_t incarnation = 0;
    std::string holder;  // empty: none
    Ending before;       // as in RegisterRequest
    bool waits = false;  // a heartbeat was answered so, and the process never becomes the member
  };
  struct Entry {
    std::string Name() const;
    Ending Lost(const std::string& text) const;  // an Ending MEMBER_LOST for this member
    bool heard() const { return incarnation != 0; }
    Process* FindRegistered(uint64_t of_incarnation);
    void Take(const Process& process);  // `process` becomes the member
    void Forget(uint64_t of_incarnation);
    // Whether the member has another holder than `other`, so that both processes may be alive.
    bool IsTwin(const std::string& other) const;
    // Whether IsTwin, and the member was heard a moment ago (kSpareSilenceUs).
    bool HasLivingTwinOf(const std::string& other, int64_t now_us) const;
    std::string TakenBy() const;
    // How the member ended, if `sender` is the next process of the member's pod and knows it;
    // otherwise empty.
    std::string EndBefore(const Process& sender) const;
    Standing Judge(Process* sender, int64_t now_us, bool may_replace);
    void Free();

    Member member;                   // at first only role and index
    uint64_t incarnation = 0;        // of the member; 0: no heartbeat has come yet
    std::string holder;              // of the member
    std::deque<Process> registered;  // the newest last
    bool ready = false;
    bool told = false;
    int64_t last_heard_us = 0;  // by a heartbeat, or by Register before the first one
    LoaderProgress loader;
    bool has_loader = false;
    uint64_t memory_bytes = 0;  // 0: not known
  };
  Entry* Find(Role role, uint32_t index);

  const std::string job_name_;
  std::vector<Entry> entries_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_MEMBERS_MEMBERS_H_
