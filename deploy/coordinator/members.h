// The processes of one generation: which have registered, which are heard from, which are ready.
//
// A member is one process, known by its incarnation (RegisterRequest). The first registered process
// of a role's index that sends a heartbeat is the member. Register alone makes nobody a member,
// because a late copy of it, from a process that is dead, may arrive at any time; a heartbeat of
// another registered process under the same index ends the generation: either the member died, with
// all that it held, or two processes were started with one index, and it is not known which.
//
// A process that was started for an earlier generation and registers only now is not distinguished
// from one of this generation: it holds nothing yet, and may serve as well as any. If there is
// another one of its index, that costs one restart; then both are told, and each process registers
// once. The local launcher starts a generation only when every process of the last one is dead, so
// there it cannot happen.
//
// Not thread-safe: the coordinator's engine locks.

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
  // incarnation. The same process may register again.
  absl::Status Register(const RegisterRequest& request, int64_t now_us);

  // Takes in a heartbeat. FAILED_PRECONDITION if the process has not registered. Sets `conflict` to
  // the end of the generation if it is a second process under its index.
  absl::Status Heartbeat(const HeartbeatRequest& request, int64_t now_us,
                         absl::optional<Ending>* conflict);

  // Discounts `stall_us`, in which this process could not hear anybody, from every silence. Returns
  // the end of the generation if a member has then been silent for longer than `timeout_us`.
  absl::optional<Ending> FindSilent(int64_t now_us, int64_t stall_us, int64_t timeout_us);

  // "data_loader 0, embedding_ps 1": the members that were never heard from.
  std::string Unheard() const;
  bool AllReady() const;

  // Notes that the member has been told how the run goes on, or exits without being told.
  void SetTold(Role role, uint32_t index);
  // Whether every member that still sends heartbeats, and every process that registered a moment
  // ago, has been told.
  bool AllTold() const;

  // Adds the members. REQUIRES: AllReady()
  void AddTo(HeartbeatAnswer* answer) const;
  void AddTo(StatusAnswer* answer, int64_t now_us) const;
  // How many samples an epoch has: the mean of the loaders' estimates; 0 if no loader has one.
  uint64_t ExpectedTrainSamples() const;

 private:
  struct Process {
    Member member;
    uint64_t incarnation = 0;
  };
  struct Entry {
    std::string Name() const;
    Ending Lost(const std::string& text) const;  // MEMBER_LOST, of this member
    bool heard() const { return incarnation != 0; }

    Member member;             // role and index from the start; the rest of the member, once heard
    uint64_t incarnation = 0;  // of the member; 0: none was heard yet
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
