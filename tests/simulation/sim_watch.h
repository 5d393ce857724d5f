// Handlers in front of an engine that pass every call on and record what they see: how far the
// loaders are, in which order an embedding PS applies Updates, and what the coordinator reports
// about cuts and the end of a generation.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_WATCH_H_
#define SATRAP_TESTS_SIMULATION_SIM_WATCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/rpc/rpc.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "tests/simulation/machine/sim_process.h"

namespace satrap::simulation {

class PutBatchWatch final : public rpc::Handler {
 public:
  // `envelope` is that of the worker. `worker` and `last_epochs` are not owned.
  PutBatchWatch(rpc::Handler* worker, const Envelope& envelope,
                std::map<Stream, uint32_t>* last_epochs)
      : worker_(worker), envelope_(envelope), last_epochs_(last_epochs) {}

  // Raises the stream's entry of `last_epochs` to the epoch or pass of each PutBatch that belongs
  // to the worker's own life.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  rpc::Handler* const worker_;
  const Envelope envelope_;
  std::map<Stream, uint32_t>* const last_epochs_;
};

// Records the order in which an embedding PS of an unordered world applies Updates. The PS answers
// an Update within the task that applied it, so this is the order of first answers.
class UpdateWatch final : public rpc::Handler {
 public:
  using Applied = std::function<void(uint32_t rank, uint64_t number)>;

  // `ps` is not owned.
  UpdateWatch(rpc::Handler* ps, Applied applied) : ps_(ps), applied_(std::move(applied)) {}

  // Calls `applied` when an Update is answered DONE for the first time. Repeats of the call are not
  // reported again.
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  rpc::Handler* const ps_;
  const Applied applied_;
  std::set<std::pair<uint32_t, uint64_t>> seen_;
};

class CoordinatorWatch final : public rpc::Handler {
 public:
  struct Events {
    // Called when others may begin to rely on the log: `cut` is committed or, if `cut` is empty,
    // the run has finished.
    std::function<void(const std::string& cut)> acknowledged;
    std::function<void(const std::string& cut)> abandoned;  // it is not in the log
    // Called once, when a member is told that the generation runs, so that it may train.
    std::function<void()> runs;
    // Called once, when a member is told of the generation's end. The end is then in effect: with
    // only one thread, no entry is being appended at this moment.
    std::function<void(RunState)> ended;
    // A heartbeat has come.
    std::function<void(const HeartbeatRequest&)> beat;
    // The heartbeat of a member is answered.
    std::function<void(const HeartbeatRequest&)> heard;
    // A process that asks for a place is told to wait.
    std::function<void()> waits;
    // Called when a member of generation `generation` says that it leaves its machine.
    std::function<void(uint64_t generation)> leaving;
    // Called when a member is told that a process has moved. If `is_over`, the generation is over.
    // Otherwise only that member leaves it, and the generation continues without a move.
    std::function<void(bool is_over)> moved;
  };

  // Nothing is owned. `process` is that of the coordinator: if it is dead, its answers reach
  // nobody. `is_over`: whether the coordinator's generation has ended.
  CoordinatorWatch(rpc::Handler* coordinator, SimProcess* process, std::function<bool()> is_over,
                   Events events)
      : coordinator_(coordinator),
        process_(process),
        is_over_(std::move(is_over)),
        events_(std::move(events)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  // `beat` is the heartbeat that is answered, if it is one. `sender` is the incarnation of the
  // process that is answered; 0: not known.
  void OnAnswer(const rpc::Method& method, const HeartbeatRequest& beat, uint64_t sender,
                const std::string& cut, const rpc::Message& answer);
  void OnCommitAnswer(const std::string& cut, const rpc::Message& answer);
  void OnState(RunState state, const Ending& how);

  rpc::Handler* const coordinator_;
  SimProcess* const process_;
  const std::function<bool()> is_over_;
  const Events events_;
  std::set<uint64_t> members_;  // incarnations of processes that were answered as members
  bool runs_ = false;
  bool ended_ = false;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_WATCH_H_
