// The processes of one generation: which have registered, which send heartbeats, which are ready.
//
// A member is one process, identified by its incarnation (RegisterRequest). Of the processes that
// have registered under one index of a role, the first that sends a heartbeat is the member.
// Register alone makes no process a member, because a late copy of the call may arrive from a
// process that is dead. A heartbeat of another registered process under the same index ends the
// generation: either the member died and its state is lost, or two processes were started with one
// index, and it is not known which of these happened.
//
// A process that was started for an earlier generation but registers only in this one is not
// distinguished from the processes of this generation: it has no state yet, and can serve as well.
// If another process has registered under the same index, that costs one restart; both are told,
// and in the next generation each registers only once. This cannot happen with the local launcher,
// which starts a generation only when every process of the previous one is dead.
//
// Not thread-safe: the lock of the coordinator's engine guards it.

#ifndef SATRAP_DEPLOY_COORDINATOR_MEMBERS_H_
#define SATRAP_DEPLOY_COORDINATOR_MEMBERS_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class Members {
 public:
  explicit Members(const JobConfig& job);

  // FAILED_PRECONDITION if the job has no such role and index; INVALID_ARGUMENT without an
  // incarnation. A process may register repeatedly.
  absl::Status Register(const RegisterRequest& request, int64_t now_us);

  // Processes a heartbeat. FAILED_PRECONDITION if the sender has not registered. If the sender is a
  // second process under its index, sets `conflict` to the generation's end.
  absl::Status Heartbeat(const HeartbeatRequest& request, int64_t now_us,
                         absl::optional<Ending>* conflict);

  // Returns the generation's end if a member has been silent for longer than `timeout_us`. First
  // subtracts from every silence `stall_us`, the time in which this process could not receive
  // heartbeats.
  absl::optional<Ending> FindSilent(int64_t now_us, int64_t stall_us, int64_t timeout_us);

  // Before training begins, a place may be taken by another process. These free the place of a
  // member that leaves, and of all that have been silent for longer than `timeout_us`.
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
  };
  struct Entry {
    std::string Name() const;
    Ending Lost(const std::string& text) const;  // an Ending MEMBER_LOST for this member
    bool heard() const { return incarnation != 0; }
    void Free();

    Member member;                   // at first only role and index
    uint64_t incarnation = 0;        // of the member; 0: no heartbeat has come yet
    std::deque<Process> registered;  // the newest last
    bool ready = false;
    bool told = false;
    int64_t last_heard_us = 0;  // by a heartbeat, or by Register before the first one
    LoaderProgress loader;
    bool has_loader = false;
  };
  Entry* Find(Role role, uint32_t index);

  const std::string job_name_;
  std::vector<Entry> entries_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_MEMBERS_H_
