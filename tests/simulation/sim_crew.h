// The crew of a life: its processes, each with its disk, its kill points and its member of the run,
// and how the first member exited.
//
// A member gets two tasks: one that runs when it has registered (load), and one that runs when all
// members are ready (begin). If a member fails or exits, its process dies. The crew records the
// first exit, unless Doom was called before. The crew owns the channels and handlers that the
// engines of its processes use, so it must outlive these engines and the loop's tasks.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_CREW_H_
#define SATRAP_TESTS_SIMULATION_SIM_CREW_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/chunk/chunk.h"
#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "common/rpc/reliable_call.h"
#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/machine/sim_disk.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/machine/sim_member.h"
#include "tests/simulation/machine/sim_network.h"
#include "tests/simulation/machine/sim_process.h"
#include "tests/simulation/machine/sim_twin.h"
#include "tests/simulation/plants/sim_plants.h"

namespace satrap::simulation {

// The longest simulated time of a world. A world that has not ended by then is stuck.
constexpr int64_t kTimeLimitUs = int64_t{600} * 1000 * 1000;

// Timeouts are short, so that a simulated minute holds many retries. No call is given up because of
// silence: what the network loses must succeed in the end.
rpc::RpcTimeouts SimTimeouts();

// The addresses at which the roles of every life listen, by index.
struct SimAddresses {
  explicit SimAddresses(SimNetwork* network);

  SimNetwork::Address coordinator;
  std::vector<SimNetwork::Address> workers;
  std::vector<SimNetwork::Address> ps;
};

class SimCrew {
 public:
  // Nothing is owned.
  struct Surroundings {
    SimLoop* loop = nullptr;
    SimNetwork* network = nullptr;
    const SimAddresses* addresses = nullptr;
    SimDisk* disk = nullptr;
    Planting* planting = nullptr;
    int64_t max_message_bytes = 0;  // 0: no limit
    bool in_pods = false;
  };
  // A member of the run.
  struct Seat {
    SimProcess* process;
    std::unique_ptr<FileSystem> disk;
    std::unique_ptr<KillPoints> kill_points;
    std::unique_ptr<SimMember> member;
    RegisterAnswer begin;  // what it registered for
  };
  // The work of a member.
  struct Duties {
    std::function<void()> load;                  // when it has registered
    std::function<void()> begin;                 // when all members are ready
    std::function<void(const CutWish&)> wished;  // repeatedly; may be null
  };
  // The first exit of a member that was not killed. Exits after Doom do not count.
  struct Exited {
    Exit exit;
    std::string why;
  };

  // The crew of life `life`, which is generation `generation` with the job `job`.
  SimCrew(const Surroundings& surroundings, int life, uint64_t generation, const JobConfig& job,
          std::unique_ptr<SimProcess> coordinator);
  SimCrew(const SimCrew&) = delete;
  SimCrew& operator=(const SimCrew&) = delete;

  void Add(Role role, int index, Duties duties);
  void Start(absl::optional<std::pair<Role, int>> absent);  // all but `absent` register
  // Makes a member, chosen by `any`, report that a peer is lost. Does nothing if the member is dead
  // or has not registered.
  void ReportFailure(uint64_t any);
  void Leave(uint64_t any);                   // a member, chosen by `any`, has to leave its machine
  void StartTwin(const TwinPlan& plan);       // call once
  void OnBeat(const HeartbeatRequest& beat);  // call when the coordinator gets one
  bool HasBeenSilent() const;                 // as SimSilence says of the members
  // From now on no member is expected to succeed.
  void Doom() { doomed_ = true; }
  bool is_doomed() const { return doomed_; }

  // REQUIRES: the member was added
  Seat& SeatOf(Role role, int index) { return seats_.at({role, index}); }
  SimProcess* coordinator() const { return processes_[0].get(); }
  // All processes, dead or alive: the coordinator, then the others in the order in which they were
  // added.
  const std::vector<std::unique_ptr<SimProcess>>& processes() const { return processes_; }
  bool has_dead() const;
  const absl::optional<Exited>& exited() const { return exited_; }
  // The envelope of the life's calls. REQUIRES: a member has registered
  const Envelope& envelope() const { return envelope_; }

  // The failure sink for the engines of a member.
  std::function<void(absl::Status)> FailureSinkOf(Role role, int index);
  rpc::Channel* Connect(SimNetwork::Address to, SimProcess* from);
  std::vector<rpc::Channel*> ConnectToWorkers(SimProcess* from);
  std::vector<rpc::Channel*> ConnectToPs(SimProcess* from);
  rpc::Channel* ConnectToCoordinator(SimProcess* from);
  rpc::Handler* Keep(std::unique_ptr<rpc::Handler> handler);
  // From now on `process` serves `methods` of `handler` at `address`. Large messages come in
  // chunks.
  void Serve(SimNetwork::Address address, SimProcess* process,
             absl::Span<const rpc::Method> methods, rpc::Handler* handler);

 private:
  rpc::Channel* ConnectToPeer(SimNetwork::Address to, SimProcess* from);
  // The memory for incomplete messages that `process` may hold.
  std::shared_ptr<rpc::ChunkMemory> ChunkMemoryOf(const SimProcess* process);
  uint64_t FirstTransfer();
  void OnRegistered(Seat* seat, const RegisterAnswer& answer, const std::function<void()>& load);

  const Surroundings surroundings_;
  const int life_;
  const uint64_t generation_;
  const JobConfig job_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  std::map<std::pair<Role, int>, Seat> seats_;  // by role and index
  std::unique_ptr<SimTwin> twin_;
  SimSilence silence_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;
  std::map<const SimProcess*, std::shared_ptr<rpc::ChunkMemory>> chunk_memories_;
  uint64_t transfer_sequences_ = 0;
  Envelope envelope_;
  bool doomed_ = false;
  absl::optional<Exited> exited_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_CREW_H_
