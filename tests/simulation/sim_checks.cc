#include "tests/simulation/sim_checks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/simulation/data/sim_formats.h"

namespace satrap::simulation {
namespace {

constexpr double kTolerance = 1e-3;
constexpr uint64_t kNoLimit = ~uint64_t{0};

class EndChecks {
 public:
  explicit EndChecks(const FinishedWorld& world) : world_(world) {}

  void CheckAll() {
    CheckSteps();
    CheckStops();
    CheckValidations();
    CheckRates();
    CheckSamples();
    CheckRows();
    CheckNothingIsLeft();
    CheckPasses();
  }

 private:
  const WorldShape& shape() const { return *world_.shape; }
  const SimTraining& training() const { return *world_.training; }
  const RecordingObserver& observer() const { return (*world_.observers)[0]; }
  size_t PassesOfValidation() const {
    return observer().validations.size() - world_.validations_before;
  }
  void Violate(std::string what) { world_.violated(std::move(what)); }
  absl::optional<std::vector<float>> ReadRow(uint32_t table, uint64_t key) {
    return world_.read_row(formats::OwnerOfKey(key, shape().ps), table, key);
  }

  // All ranks must report the same figures, and the right ones.
  void CheckSteps() {
    RunResult first = (*world_.results)[0];
    first.clear_train_seconds();
    for (RunResult result : *world_.results) {
      result.clear_train_seconds();
      if (result.SerializeAsString() != first.SerializeAsString()) {
        Violate(absl::StrCat("ranks report {", first.ShortDebugString(), "} and {",
                             result.ShortDebugString(), "}"));
      }
    }
    const bool warm =
        training().counted_steps() > static_cast<uint64_t>(shape().staleness_warmup_steps);
    const int may_be_stale = shape().ordered || !warm ? 0 : shape().max_staleness - 1;
    for (const RecordingObserver& other : *world_.observers) {
      if (other.largest_staleness > may_be_stale) {
        Violate(absl::StrCat("a rank reports staleness ", other.largest_staleness));
      }
    }
    if (first.steps() != training().counted_steps() ||
        first.samples() != training().counted_samples() ||
        first.skipped_steps() != training().non_finite_steps()) {
      Violate(absl::StrCat("ranks report {", first.ShortDebugString(), "} of ",
                           training().counted_steps(), " steps, ", training().non_finite_steps(),
                           " not finite, and ", training().counted_samples(), " samples"));
    }
  }

  // Training must end at the step at which its end was decided. After that step, only parts that
  // ranks already hold may still be trained.
  void CheckStops() {
    const uint64_t steps = training().counted_steps();
    const auto max_steps = static_cast<uint64_t>(shape().max_steps);
    if (max_steps > 0 && steps >= max_steps && steps > training().most_after(max_steps)) {
      Violate(absl::StrCat(steps, " steps with max_steps ", max_steps));
    }
    if (training().stop_step().has_value() && steps > training().most_after_stop()) {
      Violate(absl::StrCat(steps, " steps with a stop at ", *training().stop_step()));
    }
    // RequestStop comes between two allreduces of its rank, while a step may be in progress.
    if (world_.stop_wished_at.has_value() &&
        training().stop_step().value_or(steps) > *world_.stop_wished_at + 2) {
      Violate(absl::StrCat("a stop requested at step ", *world_.stop_wished_at,
                           " reached the other ranks at ", training().stop_step().value_or(steps)));
    }
  }

  // Ranks must validate at the right steps, agree on the best model, stop when patience has run
  // out, and save and test the best model.
  void CheckValidations() {
    for (const RecordingObserver& other : *world_.observers) {
      if (other.text != observer().text) {
        Violate(absl::StrCat("ranks evaluated", observer().text, " and", other.text));
      }
    }
    const std::vector<Validation>& validations = observer().validations;
    const ValidationVerdict verdict =
        JudgeValidations(shape(), validations, training().counted_steps());
    const RunResult& result = (*world_.results)[0];
    if (result.best_step() != verdict.best_step || world_.saved_step != verdict.best_step) {
      Violate(absl::StrCat("the best step is ", verdict.best_step, ", ranks report ",
                           result.best_step(), " and saved ", world_.saved_step));
    }
    const bool restores = verdict.best_step != training().counted_steps();
    if (training().restored() != restores) {
      Violate(restores ? "the best model was not restored" : "the last model was restored");
    }
    if (verdict.best.has_value() && result.valid().SerializeAsString() !=
                                        validations[*verdict.best].values.SerializeAsString()) {
      Violate("ranks report metrics that are not the best model's");
    }
    if (verdict.patience_ends.has_value() && *verdict.patience_ends + 1 < validations.size()) {
      Violate("training continued after patience had run out");
    }
    if (result.stopped_early() && !verdict.patience_ends.has_value()) {
      Violate("training stopped early with patience left");
    }
    CheckValidationSteps(validations);
    if (observer().tests != 1) Violate("the test set was not scored once");
  }

  // Each step must have the rates that follow from the validations before it.
  void CheckRates() {
    const std::vector<float>& rates = training().rates();
    for (size_t step = 0; step < rates.size(); ++step) {
      const double expected = RateAt(shape(), observer().validations, step);
      if (rates[step] != expected) {
        Violate(absl::StrCat("step ", step, " has ", rates[step], " times the learning rates, not ",
                             expected));
      }
    }
  }

  void CheckValidationSteps(const std::vector<Validation>& validations) {
    std::vector<uint64_t> steps;
    for (const Validation& validation : validations) steps.push_back(validation.step);
    const uint64_t last = training().counted_steps();
    if (!shape().has_valid) {
      if (!steps.empty()) Violate("validations without a validation set");
    } else if (shape().ordered) {
      const std::vector<uint64_t> expected = ValidationSteps(shape(), TrainOracle(shape(), last));
      const bool as_expected =
          shape().evaluate_every_seconds > 0
              ? std::includes(steps.begin(), steps.end(), expected.begin(), expected.end()) &&
                    std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) ==
                        steps.end()
              : steps == expected;
      if (!as_expected) {
        Violate(absl::StrCat("validations at steps ", absl::StrJoin(steps, " "), ", not ",
                             absl::StrJoin(expected, " ")));
      }
    } else {
      const auto every = static_cast<uint64_t>(shape().evaluate_every_steps);
      for (uint64_t due = every; every > 0 && due <= last; due += every) {
        const auto at = std::lower_bound(steps.begin(), steps.end(), due);
        if (at == steps.end() || *at > training().most_after(due)) {
          Violate(
              absl::StrCat("no validation at step ", due, " but at ", absl::StrJoin(steps, " ")));
        }
      }
      if (shape().evaluate_at_epoch_end && (steps.empty() || steps.back() != last)) {
        Violate(absl::StrCat("no validation at the end, step ", last));
      }
      if (std::adjacent_find(steps.begin(), steps.end(), std::greater_equal<>()) != steps.end()) {
        Violate(absl::StrCat("validations at ", absl::StrJoin(steps, " ")));
      }
    }
  }

  // Every train sample must come once in each epoch, unless training ended earlier, and every
  // evaluation sample once in each pass.
  void CheckSamples() {
    for (int stream = 0; stream < 3; ++stream) {
      std::set<uint64_t> ids;
      for (size_t split = 0; split < shape().split_rows[stream].size(); ++split) {
        for (int row = 0; row < shape().split_rows[stream][split]; ++row) {
          ids.insert(
              MakeSample(shape(), static_cast<Stream>(stream), static_cast<int>(split), row).id);
        }
      }
      uint32_t times = 1;
      if (stream == TRAIN_STREAM) times = shape().epochs;
      // In each life passes are numbered from 0. Passes of earlier lives are not seen here.
      if (stream == VALID_STREAM) times = PassesOfValidation();
      uint32_t begun = times;
      if (stream == TRAIN_STREAM && EndedEarly()) {
        begun = 0;
        for (const auto& [pass, seen] : training().seen()) {
          if (pass.first == TRAIN_STREAM) begun = std::max(begun, pass.second + 1);
        }
      }
      const std::map<uint64_t, int> none;
      for (uint32_t time = 0; time < times; ++time) {
        const bool whole = stream != TRAIN_STREAM || !EndedEarly() || time + 1 < begun;
        const auto seen = training().seen().find({stream, time});
        CheckTimes(ids, seen == training().seen().end() ? none : seen->second, whole,
                   absl::StrCat(Stream_Name(stream), " ", time));
      }
      CheckNoneBeyond(stream, times);
    }
  }
  // No sample may come in an epoch or pass that the job does not have.
  void CheckNoneBeyond(int stream, uint32_t times) {
    for (const auto& [pass, seen] : training().seen()) {
      if (pass.first == stream && pass.second >= times && !seen.empty()) {
        Violate(absl::StrCat(seen.size(), " samples came in ", Stream_Name(stream), " ",
                             pass.second, ", of ", times));
      }
    }
  }
  bool EndedEarly() const {
    return (*world_.results)[0].stopped_early() || training().stop_step().has_value() ||
           (shape().max_steps > 0 &&
            training().counted_steps() >= static_cast<uint64_t>(shape().max_steps));
  }
  void CheckTimes(const std::set<uint64_t>& ids, const std::map<uint64_t, int>& seen, bool whole,
                  const std::string& what) {
    for (const uint64_t id : ids) {
      const auto at = seen.find(id);
      const int got = at == seen.end() ? 0 : at->second;
      if (got > 1 || (whole && got == 0)) {
        Violate(absl::StrCat("sample ", id, " came ", got, " times in ", what));
      }
    }
    if (seen.size() > ids.size()) Violate(absl::StrCat("samples that do not exist in ", what));
  }

  // Rows must exist for the keys of trained samples and for no others. In ordered mode their values
  // must be equal to the values of the oracle, and in unordered mode to the values of a replay that
  // applies each push once. If ranks have restored a model, the values must be those of the model
  // that was restored last.
  void CheckRows() {
    std::map<uint64_t, SimRow> expected = training().tables().content().rows;
    if (shape().ordered) {
      const uint64_t steps = training().counted_steps();
      const std::vector<Validation>& validations = observer().validations;
      const OracleResult whole = TrainOracle(shape(), EndedEarly() ? steps : kNoLimit, validations);
      if (whole.steps != steps) {
        Violate(absl::StrCat("the oracle makes ", whole.steps, " steps, not ", steps));
      }
      expected = training().restored() ? TrainOracle(shape(), world_.saved_step, validations).rows
                                       : whole.rows;
    }
    TablesToCheck tables;
    for (const auto& ps : world_.pss) tables.rows += ps->Stats()[1].rows();
    tables.read_row = [this](uint32_t table, uint64_t key) { return ReadRow(table, key); };
    CheckTables({std::move(expected), training().tables().content().pushes}, tables,
                world_.violated);
    if (training().updates_due() > 0) {
      Violate(absl::StrCat(training().updates_due(), " Updates were never applied"));
    }
  }

  // A loader must not run ahead into later passes: each embedding worker accepts at most one part
  // of a later pass, and the next part waits.
  void CheckPasses() {
    for (const auto& [stream, last] : world_.last_epochs) {
      const size_t passes = stream == TRAIN_STREAM   ? shape().epochs - 1
                            : stream == VALID_STREAM ? PassesOfValidation()
                                                     : observer().tests;
      const size_t ahead = stream == TRAIN_STREAM ? 0 : world_.workers.size();
      if (last > passes + ahead) {
        Violate(absl::StrCat("a loader is at ", last, " of ", Stream_Name(stream), ", ranks at ",
                             passes));
      }
    }
  }

  // Every part that a rank got must be released, and an ordered step must have made W Updates at
  // every PS, one for each of the W ranks.
  void CheckNothingIsLeft() {
    for (const auto& worker : world_.workers) {
      const auto progress = worker->progress();
      if (progress.outstanding_parts > 0 || progress.waiting_requests > 0) {
        Violate(absl::StrCat("an embedding worker still has ", progress.outstanding_parts,
                             " parts outstanding and ", progress.waiting_requests,
                             " requests waiting"));
      }
    }
    if (!shape().ordered) return;
    const uint64_t steps = training().counted_steps() - world_.steps_before;
    const uint64_t expected = shape().ranks * steps;
    for (const auto& ps : world_.pss) {
      if (ps->counts().updates != expected) {
        Violate(
            absl::StrCat("a PS has applied ", ps->counts().updates, " Updates, not ", expected));
      }
    }
  }

  const FinishedWorld& world_;
};

}  // namespace

void RecordingObserver::OnEvaluation(const EvaluationEvent& event) {
  absl::StrAppend(&text, " {", Stream_Name(event.stream), " epoch ", event.epoch, " steps ",
                  event.steps, event.best ? " best " : " ", event.values.ShortDebugString(), "}");
  if (event.stream == VALID_STREAM) {
    validations.push_back({event.steps, event.values});
  } else {
    ++tests;
  }
}

void CheckTables(const SimTables::Content& expected, const TablesToCheck& tables,
                 const std::function<void(std::string)>& violated) {
  if (tables.rows != expected.rows.size()) {
    violated(absl::StrCat("there are ", tables.rows, " rows, not ", expected.rows.size()));
  }
  for (const auto& [key, row] : expected.rows) {
    const auto values = tables.read_row(1, key);
    if (!values.has_value()) violated(absl::StrCat("the row of key ", key, " is missing"));
    for (int d = 0; d < kRowValues && values.has_value(); ++d) {
      const double value = row.values[d];
      if (!(std::abs((*values)[d] - value) <= kTolerance * (1 + std::abs(value)))) {
        violated(
            absl::StrCat("row of key ", key, " value ", d, " is ", (*values)[d], ", not ", value));
      }
    }
  }
  // The counter row must hold each push of each rank once.
  const std::vector<float> values =
      tables.read_row(0, CounterKey()).value_or(std::vector<float>(kCounterValues));
  for (int rank = 0; rank < kMaxRanks; ++rank) {
    const auto made = static_cast<float>(expected.pushes[rank]);
    if (std::abs(values[rank] - made) > kTolerance) {
      violated(
          absl::StrCat("rank ", rank, " made ", made, " pushes, ", values[rank], " were applied"));
    }
  }
}

void CheckFinishedWorld(const FinishedWorld& world) { EndChecks(world).CheckAll(); }

}  // namespace satrap::simulation
