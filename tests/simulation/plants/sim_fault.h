// The faults that can be planted into a world, to show that the simulation finds them. A Fault
// describes each one: what is wrong, and what the fault replaces. README.md lists them with the
// first seed that finds each; `simulate -- --faults` makes that table.
//
// A fault is planted from outside the engines: as a handler, channel, trainer, disk or part source
// that is put between two of them and breaks one promise, or by giving an engine another job,
// position or other options. The single exception is Fault::one_capacity.
//
// Not thread-safe: all of it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_FAULT_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_FAULT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/checkpoint/run_log.h"
#include "common/file/file_system.h"
#include "common/rpc/rpc.h"
#include "data_loader/engine/part_source.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/step_trainer.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

class ForgetfulLedger;

// What all lives of a world share.
struct LifeMemory {
  struct Lease {
    uint64_t generation = 0;
    rpc::Message request;
  };

  // The calls, by sender and number, that each embedding PS has run.
  std::map<int, std::set<std::pair<uint32_t, uint64_t>>> windows;
  std::map<uint32_t, Lease> leases;  // the last of each loader
};

// The place in a life where a fault is planted. Nothing is owned; everything outlives the plant.
struct Site {
  const WorldShape* shape = nullptr;
  SimLoop* loop = nullptr;
  LifeMemory* memory = nullptr;
  const Envelope* envelope = nullptr;  // of the calls of this life
  ForgetfulLedger* ledger = nullptr;   // started with the ledger that the life begins with
  Role role = COORDINATOR;
  int index = 0;
  // True for the last PS or rank. Some faults are planted only there, because a check that looks at
  // only one process, or only at the sum over all processes, would miss them.
  bool is_last = false;
  FileSystem* disk = nullptr;  // handlers of PSs and the coordinator: the process's
  std::string run_dir;         // handlers of the coordinator: the run's folder
  // For handlers around chunks: true while a chunk is being handed to the ChunkedHandler.
  std::shared_ptr<bool> in_chunk;
};

// Each of these makes an object that is put before `next`, which is not owned. Null: `next` stays
// as it is.
using HandlerHook = std::function<std::unique_ptr<rpc::Handler>(const Site&, rpc::Handler* next)>;
using TrainerHook = std::function<std::unique_ptr<StepTrainer>(const Site&, StepTrainer* next)>;
using SourceHook =
    std::function<std::unique_ptr<PartSource>(const Site&, Stream stream, PartSource* next)>;
// Makes a rank's channels to the embedding workers. They are put before those of `next`, which are
// not owned.
using ChannelsHook = std::function<std::vector<std::unique_ptr<rpc::Channel>>(
    const Site&, const std::vector<rpc::Channel*>& next)>;
// Returns a disk that owns `next`, or `next` itself.
using DiskHook =
    std::function<std::unique_ptr<FileSystem>(const Site&, std::unique_ptr<FileSystem>)>;

// One fault. Everything that its fields do not change stays as it is.
struct Fault {
  enum Worlds { kAll, kSync, kHybrid };

  const char* says = "";     // what is wrong, for the table
  Worlds worlds = kAll;      // in which it is looked for
  bool with_deaths = false;  // it is looked for in worlds with deaths

  // Changes the job that the engines of a role are made from.
  std::function<void(const Site&, JobConfig*)> job = nullptr;
  std::function<void(const Site&, RankOptions*)> options = nullptr;
  // Changes the position that a loader, an embedding worker or a rank is made with.
  std::function<void(const Site&, RunPosition*)> position = nullptr;
  bool ledger_ignored = false;  // by loaders
  bool one_capacity = false;    // all lanes and parts of an embedding worker share one
  int epochs_too_many = 0;      // of loaders and ranks; of one of the two the world would just stop

  HandlerHook before_ps = nullptr;
  HandlerHook before_worker = nullptr;
  HandlerHook before_coordinator = nullptr;
  ChannelsHook channels = nullptr;
  TrainerHook trainer = nullptr;
  // Falsifies the metrics that a rank sees: they differ a little from the true ones, so that the
  // rank believes that they are better than all before. `merges`: the number of evaluations so far,
  // from 1. Everybody else sees the true metrics.
  std::function<void(int merges, MetricValues*)> disguise = nullptr;
  SourceHook source = nullptr;
  DiskHook disk = nullptr;

  // These three are put where large messages are split into chunks: the first before a
  // ChunkedHandler, where it sees single chunks; the second after a ChunkedHandler, where it sees
  // whole requests; the third below a ChunkedChannel, where it owns the channel that it is given.
  HandlerHook before_chunks = nullptr;
  HandlerHook after_chunks = nullptr;
  std::function<std::unique_ptr<rpc::Channel>(std::unique_ptr<rpc::Channel>)> below_chunks =
      nullptr;
  bool chunks_kept = false;  // incomplete messages are held for ever

  // Runs before each claim of a generation.
  std::function<void(const std::string& run_dir, FileSystem* disk)> before_claim = nullptr;
  // Changes the claim that a coordinator makes, given the run's log. `is_stale`: the coordinator
  // belongs to an earlier submission, or to the pod of an earlier life, and must claim nothing.
  std::function<void(const RunLog& log, bool is_stale, ClaimRequest*)> claim = nullptr;
};

// All faults, in the order of the table.
absl::Span<const Fault> AllFaults();
// The fault with this text. REQUIRES: it exists
const Fault& FaultThat(absl::string_view says);

// The faults of one kind. Each list is in sim_plants_KIND.cc, together with its plants.
std::vector<Fault> RankFaults();
std::vector<Fault> MessageFaults();
std::vector<Fault> LoaderFaults();
std::vector<Fault> TableFaults();
std::vector<Fault> ChunkFaults();
std::vector<Fault> LifeFaults();
std::vector<Fault> CutFaults();
std::vector<Fault> LogFaults();
std::vector<Fault> EndFaults();
std::vector<Fault> PlaceFaults();

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_FAULT_H_
