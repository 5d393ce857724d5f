// The settings that a test of RankEngines gives its FakeCluster, and the events that it can check
// afterwards. The fake peers that make up the cluster share both.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_RECORD_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_RECORD_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/checkpoint/ledger/ledger.h"
#include "nn_worker/rank/rank_observer.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"

namespace satrap {

struct FakeOrders {
  // The AUCs that validations will give, in order; .5 afterwards.
  std::vector<double> aucs;
  std::set<uint64_t> not_finite_steps;
  // The fraction of a step's samples that are positive. Null: labels do not have two classes.
  std::function<double(uint64_t step)> label_rate;
  std::set<uint64_t> large_steps;  // of the finite ones, those with a large gradient
  int64_t global_batch_size = 1;
  // The sum of squares of each step's dense gradient; 0 if the job has no gradient_clip_norm.
  // Embedding workers answer pushes with twice this number.
  double dense_squares = 0;
  // Every call of this method gets an error as its answer.
  std::string broken_method;
  // Whether two parts may have the same records, and thus the same name.
  bool allow_twice = false;
  // How long it takes to write a cut, and the numbers of the cuts to abandon.
  int64_t cut_writing_ms = 200;
  std::set<uint64_t> abandoned_cuts;
  // If not OK, every cut ends with this error.
  absl::Status broken_cut;
};

// A cut that was begun.
struct FakeCut {
  CutPlan plan;  // of rank 0
  std::string name;
  std::set<std::string> released;  // training parts, since the cluster began
  Ledger ledger;                   // of all ranks, since the cluster began
  bool committed = false;
};

struct FakeRecord {
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

  std::vector<Step> steps;   // every allreduce
  std::vector<Push> pushes;  // in the order in which they were applied
  std::vector<std::string> acks;
  std::vector<double> ended_steps;  // the `squares` of every EndStep
  std::vector<double> norms;        // that rank 0 reported
  // Each cut as "STEP", followed by those of the words "best", "last", "wished" and "leave" that
  // apply to its plan, and by "abandoned" if it was abandoned; each restore as "restored NAME".
  std::vector<std::string> saved;
  std::vector<FakeCut> cuts;
  std::vector<double> pauses;       // of rank 0
  int cut_ends = 0;                 // that rank 0 reported
  std::vector<std::string> scored;  // parts
  std::vector<absl::Status> failures;
  std::vector<RunResult> results;            // of each rank that finished
  std::vector<EvaluationEvent> evaluations;  // of rank 0
  std::vector<std::string> phases;           // of rank 0
  std::vector<int> staleness;                // of the parts that rank 0 trained
  int prepared_during_steps = 0;             // parts prepared while their rank trained another

  // The numbers of the steps that counted.
  std::vector<uint64_t> CountedSteps() const {
    std::vector<uint64_t> numbers;
    for (const Step& step : steps) {
      if (step.weight > 0) numbers.push_back(step.number);
    }
    return numbers;
  }
  // Names of the parts that were pushed.
  std::multiset<std::string> PushedParts() const {
    std::multiset<std::string> parts;
    for (const Push& push : pushes) parts.insert(push.part);
    return parts;
  }
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_RECORD_H_
