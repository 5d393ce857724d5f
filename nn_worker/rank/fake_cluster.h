// A cluster around RankEngines for tests, in one thread on one ManualExecutor: embedding workers
// that hand out parts, an allreduce that ends when all ranks have joined, and a network that
// delays, loses and repeats messages as a seed decides. It checks while it runs:
//   - a Lookup misses at most max_staleness - 1 pushes of its rank, none during the warm-up;
//   - an ordered Lookup of step s comes when exactly the steps before s are pushed, by all ranks;
//   - an evaluation Lookup misses no push of any rank;
//   - a part is handed out once and ended once, by a push of a step with weight or by an Ack;
//   - at a cut nothing is outstanding, all ranks plan the same, and what they have released since the
//     cut before is what was pushed or acknowledged since.
// Part i of a lane is block i of a split of its own, so a ledger names parts.

#ifndef SATRAP_NN_WORKER_RANK_FAKE_CLUSTER_H_
#define SATRAP_NN_WORKER_RANK_FAKE_CLUSTER_H_

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/ledger.h"
#include "common/numeric/random.h"
#include "common/rpc/answer_window.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"
#include "nn_worker/rank/rank_engine.h"

namespace satrap {

struct FakeNetwork {
  uint64_t seed = 1;
  double loss = 0;    // probability that a request, and then that an answer, is lost
  double repeat = 0;  // probability that a request arrives twice
  int64_t max_delay_us = 0;
};

struct FakePart {
  PartId id;
  uint32_t samples = 1;
  double weight = 1;
  bool last_of_lane = false;
};

// A cut, as it was begun.
struct FakeCut {
  CutPlan plan;  // of rank 0
  std::string name;
  std::set<std::string> released;  // training parts, since the cluster began
  Ledger ledger;                   // of all ranks, since the cluster began
  bool committed = false;
};

class FakeCluster {
 public:
  // The options of rank 0; the others' differ by the rank only.
  FakeCluster(RankOptions options, int num_workers, FakeNetwork network = FakeNetwork(),
              KillPoints* kill_points = nullptr);
  ~FakeCluster();

  // Queues a part at an embedding worker (ordered: the worker it belongs to).
  void Put(int worker, const FakePart& part);
  // Ends (stream, epoch) at every worker: no part of it comes after those queued.
  void End(Stream stream, uint32_t epoch);
  // Ordered: an epoch whose lanes have so many batches, of one sample a rank.
  void PutOrderedEpoch(uint32_t epoch, const std::vector<int>& batches_of_lane);
  // Unordered: `count` parts of one sample, dealt to the workers, and the end.
  void PutEpoch(Stream stream, uint32_t epoch, int count);

  // The AUCs that validations will give, in order; .5 afterwards.
  std::vector<double> aucs;
  std::set<uint64_t> not_finite_steps;
  int64_t global_batch_size = 1;
  // Every call of this method is answered with an error.
  std::string broken_method;
  // Two parts may have the same records, and the same name.
  bool allow_twice = false;
  // How long a cut is written, and which are abandoned, by number.
  int64_t cut_writing_ms = 200;
  std::set<uint64_t> abandoned_cuts;
  // How every cut ends, if not OK.
  absl::Status broken_cut;

  // Queues what `first` was given and had not released at `cut`, as loaders do that know the cut's
  // ledger.
  void PutRest(const FakeCluster& first, const FakeCut& cut);

  void Start();
  // Runs for `ms` of simulated time.
  void RunFor(int64_t ms) { executor.AdvanceBy(ms * 1000); }
  // Runs until all ranks have finished or one has failed. False if that takes more than an hour.
  bool Run();

  RankEngine* rank(int r) { return ranks_[r]->engine.get(); }

  struct Step {
    uint64_t number;
    double weight;
    int idle_ranks;
    std::vector<std::string> parts;  // by rank; "-" for none
  };
  struct Push {
    int rank;
    StepHeader step;
    std::string part;
    bool has_gradients;
  };

  // What happened.
  std::vector<Step> steps;   // every allreduce
  std::vector<Push> pushes;  // in the order in which they were applied
  std::vector<std::string> acks;
  // "STEP", then "best", "last", "wished", "leave" as the plan says, then "abandoned"; "restored
  // NAME" by each restore.
  std::vector<std::string> saved;
  std::vector<FakeCut> cuts;
  std::vector<double> pauses;       // of rank 0
  int cut_ends = 0;                 // told to rank 0
  std::vector<std::string> scored;  // parts
  std::vector<absl::Status> failures;
  std::vector<RunResult> results;            // of each rank that finished
  std::vector<EvaluationEvent> evaluations;  // of rank 0
  std::vector<std::string> phases;           // of rank 0
  std::vector<int> staleness;                // of the parts that rank 0 trained
  ManualExecutor executor;

  // The numbers of the steps that counted.
  std::vector<uint64_t> CountedSteps() const;
  // Names of the parts that were pushed.
  std::multiset<std::string> PushedParts() const;

 private:
  class Worker;
  class Link;
  class Trainer;
  class Observer;
  struct Rank {
    std::vector<std::unique_ptr<Link>> links;
    std::unique_ptr<Trainer> trainer;
    std::unique_ptr<Observer> observer;
    std::unique_ptr<RankEngine> engine;
  };
  struct Joiner {
    uint64_t step = 0;
    absl::optional<PartInput> part;
    StepFlags flags;
    absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done;
    bool there = false;
  };

  void JoinStep(int rank, Joiner joiner);
  void FinishStep();
  void MarkCut();
  void EndCut(size_t cut);
  void Barrier(int rank, const std::string& what, absl::AnyInvocable<void()> done);
  int64_t RandomDelayUs();
  int AllowedParts() const;  // training parts that a rank may hold now
  bool Happens(double probability) { return random_.NextDouble() < probability; }

  const RankOptions options_;
  const FakeNetwork network_;
  SplitMix64 random_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Joiner> joiners_;
  std::map<std::string, std::vector<absl::AnyInvocable<void()>>> barriers_;
  std::vector<int> barrier_count_;  // by rank: barriers entered
  std::vector<int> outstanding_;    // by rank: training parts handed out and not ended
  std::map<uint64_t, int> pushes_of_step_;
  std::set<std::string> handed_out_;
  uint64_t scored_samples_ = 0;
  size_t validations_ = 0;
  std::vector<std::pair<int, FakePart>> puts_;
  std::set<std::pair<Stream, uint32_t>> ends_;
  struct Planner {
    CutPlan plan;
    absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done;
    absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended;
  };
  std::vector<Planner> planners_;  // of the ranks that have come to the cut
  absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> cut_ended_;
  bool writing_ = false;
  bool restored_ = false;
  Ledger ledger_;                   // handed over
  Ledger ended_parts_;              // pushed or acknowledged
  std::set<std::string> released_;  // the same, by name
};

std::string NameOf(const PartId& id);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_FAKE_CLUSTER_H_
