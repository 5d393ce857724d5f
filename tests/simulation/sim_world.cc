#include "tests/simulation/sim_world.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/run_log.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/machine/sim_disk.h"
#include "tests/simulation/sim_crew.h"
#include "tests/simulation/sim_cut_reader.h"
#include "tests/simulation/sim_files.h"
#include "tests/simulation/sim_history.h"
#include "tests/simulation/sim_life.h"
#include "tests/simulation/sim_pinning_reader.h"
#include "tests/simulation/sim_rival.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kMaxEvents = 4000000;
constexpr uint64_t kRunId = 0x5a7a95a7a95a7a95;
constexpr char kRunDir[] = "/run";
// A run in which a process dies after every step may have as many lives as it has steps, so only
// lives without progress count. Without poison, only a few lives of a world end early; with poison,
// max_restarts is at most 4.
constexpr int kMostLivesWithoutProgress = 20;

class World {
 public:
  World(const WorldShape& shape, const Fault* fault, const NetworkFaults& faults,
        const DeathPlan& deaths)
      : shape_(shape),
        deaths_(deaths),
        fault_(fault),
        loop_(shape.seed),
        network_(&loop_, faults, shape.max_message_bytes),
        addresses_(&network_),
        disk_(shape.seed),
        mount_(disk_.Mount()),
        history_(
            shape,
            [this](const std::string& cut) {
              return ReadCutIn(FolderOfCut(kRunDir, cut), JobOf(shape_), mount_.get());
            },
            [this](const std::string& cut) {
              return mount_->Open(FolderOfCut(kRunDir, cut) + "/manifest").ok();
            },
            [this](std::string what) { Violate(std::move(what)); }),
        other_command_(shape.seed, AroundOtherCommand()) {
    // Writes real files, which the loaders of all lives read. Only the disk of the run is
    // simulated.
    WriteFiles(shape_, folder_, &files_);
    job_ = JobOf(shape_);
    for (const int64_t events : deaths_.cut_wishes) cut_wishes_.insert(events);
  }

  // Queued tasks hold callbacks into the engines, so they are dropped first.
  ~World() { loop_.DropTasks(); }

  WorldResult Run() {
    // The launcher creates the folders before it starts a coordinator.
    CHECK_OK(mount_->CreateFolders(kRunDir));
    CHECK_OK(mount_->SyncFolder("/"));
    BeginLife(/*resume=*/false, /*other_replicas=*/false);
    const auto ended = [this] {
      other_command_.Act(loop_.events());
      // Between two lives there is nothing to drive, but processes of earlier lives and late
      // messages still act.
      if (!next_life_due_) Drive();
      return !result_.violations.empty() || over_;
    };
    if (!loop_.RunUntil(ended, kTimeLimitUs, kMaxEvents)) {
      Violate(absl::StrCat("stuck: ", lives_.empty() ? 0 : life().ranks_finished(),
                           " ranks have finished in life ", lives_.size()));
    }
    if (victim_ != nullptr) victim_->KillAtAct(0);  // it has outlived its end
    result_.events = loop_.events();
    result_.simulated_us = loop_.NowUs();
    result_.lives = static_cast<int>(lives_.size());
    result_.cuts = history_.cuts();
    result_.pinned_reads = other_command_.reads();
    result_.failed_reads = disk_.counts().failed_reads;
    result_.failed_writes = disk_.counts().failed - disk_.counts().failed_reads;
    result_.cuts_abandoned_at_log = static_cast<int>(history_.abandoned_cuts());
    result_.requests_to_the_next_life = network_.counts().to_the_next;
    result_.chunks = network_.counts().chunks;
    if (lives_.empty()) return result_;
    if (result_.violations.empty()) history_.CheckNewestAgain();
    result_.steps = life().training().counted_steps();
    // The checks ask the PSs for their rows, but a dead PS does not answer. In that case only the
    // cuts were checked.
    if (result_.violations.empty() && life().finished() && !life().has_dead()) CheckEnd();
    return result_;
  }

 private:
  Life& life() { return *lives_.back(); }  // the newest
  void Violate(std::string what) {
    if (result_.violations.size() < 20) result_.violations.push_back(std::move(what));
  }

  JobConfig JobOf(const WorldShape& shape) const {
    JobConfig job = MakeJob(shape);
    job.set_data_root(files_.data_root());
    *job.mutable_data()->mutable_train_files() = files_.data().train_files();
    *job.mutable_data()->mutable_valid_files() = files_.data().valid_files();
    *job.mutable_data()->mutable_test_files() = files_.data().test_files();
    job.set_run_dir(kRunDir);
    job.set_max_restarts(deaths_.max_restarts);
    for (const KillPoint& point : deaths_.kill_points) *job.add_kill_points() = point;
    return job;
  }

  // The shape, with the numbers of replicas of the job.
  WorldShape ShapeOf(const JobConfig& job) const {
    WorldShape shape = shape_;
    shape.loaders = job.data_loader().replicas();
    shape.workers = job.embedding_worker().replicas();
    shape.ps = job.embedding_ps().replicas();
    shape.ranks = job.nn_worker().replicas();
    // With fewer ranks, the rank that asks for a stop might not exist.
    if (shape.stop_rank >= 0) shape.stop_rank %= shape.ranks;
    return shape;
  }

  PinningReader::Surroundings AroundOtherCommand() {
    return {mount_.get(), [this] { return FolderOfCut(kRunDir, history_.newest_cut()); },
            [this](const std::string& folder) {
              return ReadCutIn(folder, JobOf(shape_), mount_.get()).status();
            },
            [this](std::string what) { Violate(std::move(what)); }};
  }

  void TakeLog() {
    const auto log = RunLog::Open(kRunDir, mount_.get());
    if (!log.ok()) return Violate(absl::StrCat("the log: ", log.status().ToString()));
    if (disk_.counts().failed > 0) history_.OnDiskFailure();
    history_.OnLog(*log, /*acknowledged=*/true);
    result_.compacted |= log->compacted_number() > 0;
    CheckRestarts(log->entries());
  }

  // Checks that a run which takes no cuts does not restart for ever.
  void CheckRestarts(const std::vector<RunLogEntry>& entries) {
    int without_cut = 0;
    for (const RunLogEntry& entry : entries) {
      if (entry.cut().step() > committed_step_) {
        committed_step_ = entry.cut().step();
        lives_without_progress_ = 0;
      }
      // The count begins anew in two cases: when the run is resumed, because a person has looked at
      // the run, and when a job that could not begin is dropped, because that loses no work.
      const bool is_resumed = entry.generation().began() == BEGAN_RESUME;
      if (entry.has_cut() || is_resumed || entry.has_dropped()) without_cut = 0;
      if (entry.has_generation()) ++without_cut;
    }
    if (without_cut > deaths_.max_restarts + 2) {  // "scale" and "scaled" are two entries
      Violate(absl::StrCat(without_cut, " generations without a cut, with max_restarts ",
                           deaths_.max_restarts));
    }
  }

  Claimer NewClaimer(int number) {
    auto process = std::make_unique<SimProcess>(&loop_, number,
                                                absl::StrCat("coordinator 0 of life ", number));
    auto disk =
        Planting(fault_, shape_, &loop_, &memory_).DiskOf(COORDINATOR, disk_.Mount(process.get()));
    return Claimer(std::move(process), std::move(disk));
  }

  Claimer Claim(int number, const ClaimRequest& request) {
    Claimer claimer = NewClaimer(number);
    const int64_t rival_at = deaths_.RivalAt(number);
    if (rival_at == 0) {
      claimer.claimed = ClaimGeneration(request, claimer.disk.get());
      return claimer;
    }
    // Two coordinators claim the same generation, each with its own mount. The loser exits with 75
    // and does not join.
    ++result_.rival_claims;
    return ClaimAgainst(NewClaimer(number), rival_at, std::move(claimer), request,
                        [this](std::string what) { Violate(std::move(what)); });
  }

  static bool CanBegin(const JobConfig& job) { return job.stop_seconds() != kCannotBegin; }

  // Begins a life as a launcher starts a generation. `resume`: the run had ended, and somebody
  // resumes it.
  void BeginLife(bool resume, bool other_replicas) {
    if (++lives_without_progress_ > kMostLivesWithoutProgress) {
      return Violate(absl::StrCat("the run begins again and again from step ", committed_step_));
    }
    const int number = ++lives_begun_;
    ClaimRequest request;
    // A job without train files is not valid, so the run cannot be resumed with it.
    if (files_.data().train_files_size() == 0) resume = other_replicas = false;
    request.job = JobOf(other_replicas ? shape_.WithOtherReplicas(number) : ShapeOf(job_));
    // If false, the life uses the job in the log, such as that of a scale, whatever job this
    // launcher has.
    request.next_job = number > 1 && (resume || other_replicas);
    if (request.next_job && deaths_.ResumesWithWrongJob(number)) {
      request.job.set_stop_seconds(kCannotBegin);
    }
    request.ended.set_text("a death");
    request.writer = static_cast<uint64_t>(number);
    request.run_id = kRunId;
    request.compact_after = shape_.compact_after;
    if (fault_ != nullptr && fault_->before_claim != nullptr) {
      fault_->before_claim(kRunDir, mount_.get());
    }
    Claimer claimer = Claim(number, request);
    if (!claimer.claimed.ok()) return OnClaimFailed(claimer.claimed.status(), other_replicas);
    TakeLog();
    if (history_.finished()) {
      over_ = true;
      return;
    }
    if (number > 1) history_.CheckNewestAgain();
    job_ = claimer.claimed->job;
    if (!CanBegin(job_)) ++result_.jobs_that_cannot_begin;
    Life::Start start{number, ShapeOf(job_), std::move(claimer.process), std::move(claimer.disk),
                      *std::move(claimer.claimed)};
    Life::Surroundings surroundings;
    surroundings.loop = &loop_;
    surroundings.network = &network_;
    surroundings.addresses = &addresses_;
    surroundings.disk = &disk_;
    surroundings.history = &history_;
    surroundings.fault = fault_;
    surroundings.memory = &memory_;
    surroundings.told = WhatIsTold(start.claimed.generation);
    surroundings.cannot_begin = [this, generation = start.claimed.generation] {
      history_.OnCannotBegin(generation);
    };
    surroundings.violated = [this](std::string what) { Violate(std::move(what)); };
    life_began_at_event_ = loop_.events();
    // From here on the life must not end without a reason.
    is_excused_ = false;
    lives_.push_back(std::make_unique<Life>(surroundings, std::move(start)));
    life().Begin();
  }

  CoordinatorWatch::Events WhatIsTold(uint64_t generation) {
    CoordinatorWatch::Events told;
    told.acknowledged = [this](const std::string& cut) {
      TakeLog();
      if (!cut.empty() && !history_.IsCommitted(cut)) {
        Violate(absl::StrCat(cut, " was said to be committed, and the log has no entry of it"));
      }
    };
    told.abandoned = [this](const std::string& cut) { history_.OnAbandoned(cut); };
    told.runs = [this, generation] {
      TakeUnacknowledgedLog("when a generation runs");
      history_.OnRuns(generation);
    };
    told.ended = [this, generation] {
      TakeUnacknowledgedLog("at the end of a generation");
      history_.OnEnded(generation);
    };
    return told;
  }

  void OnClaimFailed(const absl::Status& status, bool other_replicas) {
    // In this case the run had finished, but whoever resumed it did not know that END had been
    // linked.
    if (absl::StrContains(status.message(), "has finished")) {
      TakeLog();
      over_ = history_.finished();
      if (!over_) Violate(absl::StrCat("a run without END in its log: ", status.ToString()));
      return;
    }
    const bool no_more_restarts =
        absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), "max_restarts");
    if (no_more_restarts) {
      if (deaths_.poison_after_events == 0) return Violate(status.ToString());
      poison_is_over_ = true;
      if (files_.data().train_files_size() == 0) {
        over_ = true;  // see BeginLife
        return;
      }
      // A claim may fail for everybody only if the disk fails; then the launcher tries again.
    } else if (disk_.counts().failed == 0) {
      return Violate(absl::StrCat("no generation can be claimed: ", status.ToString()));
    }
    BeginLifeLater(1000, no_more_restarts, other_replicas);
  }

  bool IsOutOfRestarts(const std::string& why) const {
    return deaths_.poison_after_events > 0 && absl::StrContains(why, "max_restarts");
  }

  void BeginLifeLater(int64_t after_us, bool resume, bool other_replicas) {
    next_life_due_ = true;
    loop_.PostAfter(after_us, [this, resume, other_replicas] {
      next_life_due_ = false;
      BeginLife(resume, other_replicas);
    });
  }

  // Called before each event, so that anything may happen at any event.
  void Drive() {
    if (lives_.empty() || over_) return;
    // Handle an exit first: a member that exits ends its process, which would otherwise look
    // killed.
    if (life().exited().has_value()) return OnExit(*life().exited());
    if (life().has_dead()) return EndLife(/*resume=*/false);
    if (history_.finished()) {
      over_ = life().finished();
      return;
    }
    // The victim will die at one of its next acts. Until then nothing else is done to the life,
    // because that would hide the end which the plan has drawn.
    if (victim_ != nullptr) return;
    const int64_t events = loop_.events() - life_began_at_event_;
    while (!cut_wishes_.empty() && *cut_wishes_.begin() <= loop_.events()) {
      cut_wishes_.erase(cut_wishes_.begin());
      life().Wish(WishOf(WishRequest::CUT));
    }
    if (ends_used_ < deaths_.ends.size()) {
      if (events >= deaths_.ends[ends_used_].after_events) Apply(deaths_.ends[ends_used_++]);
    } else if (deaths_.poison_after_events > 0 && !poison_is_over_ &&
               events >= deaths_.poison_after_events) {
      LifeEnd end = DeathPlan::DrawEnd(shape_.seed, lives_.size() + 100);
      end.how = LifeEnd::kDeath;
      end.other_replicas = false;
      Apply(end);
    }
  }

  WishRequest WishOf(WishRequest::Kind kind) {
    WishRequest wish;
    wish.set_kind(kind);
    if (kind == WishRequest::SCALE) {
      *wish.mutable_job() = JobOf(shape_.WithOtherReplicas(lives_begun_ + 1));
      if (end_.has_value() && end_->cannot_begin) {
        wish.mutable_job()->set_stop_seconds(kCannotBegin);
      }
    }
    return wish;
  }

  void Apply(const LifeEnd& end) {
    is_excused_ = true;
    end_ = end;
    switch (end.how) {
      case LifeEnd::kDeath:
        victim_ = life().processes()[end.victim % life().processes().size()].get();
        // If the victim acts too seldom to die, the life finishes.
        end.at_act > 0 ? victim_->KillAtAct(end.at_act) : victim_->Kill();
        return;
      case LifeEnd::kPower:
        // Zombies of earlier lives run on the same machine, so they die, too.
        for (const auto& any : lives_) {
          any->Doom();
          for (const auto& process : any->processes()) process->Kill();
        }
        other_command_.Die();
        disk_.LosePower();
        history_.OnPowerLoss();
        // Read the log at once, before a claim adds to it, so that the loss of an acknowledged
        // entry is found here.
        TakeUnacknowledgedLog("after a loss of power");
        return;
      case LifeEnd::kOtherLauncher:
        end_->all_at_once = false;
        // Two complete generations may run at the same time, as when a network has been divided.
        end_->nobody_dies = end.seed % 4 != 0;
        return EndLife(/*resume=*/false);
      case LifeEnd::kFailedWrite:
        disk_.FailNthWrite(
            end.nth_operation,
            end.disk_is_full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kDataLoss,
            end.in_log ? "/log" : "");
        return;
      case LifeEnd::kFailedRead:
        disk_.FailNthRead(end.nth_operation);
        return;
      case LifeEnd::kFailure:
        return life().ReportFailure(end.victim);
      case LifeEnd::kStopWish:
        return life().Wish(WishOf(WishRequest::STOP));
      case LifeEnd::kScaleWish:
        return life().Wish(WishOf(WishRequest::SCALE));
    }
  }

  void TakeUnacknowledgedLog(const char* when) {
    const auto log = RunLog::Open(kRunDir, mount_.get());
    if (!log.ok()) return Violate(absl::StrCat(when, ": ", log.status().ToString()));
    if (disk_.counts().failed > 0) history_.OnDiskFailure();
    history_.OnLog(*log, /*acknowledged=*/false);
  }

  void OnExit(const SimCrew::Exited& exited) {
    switch (exited.exit) {
      case Exit::kDone:
        return history_.finished() ? EndLife(false) : EndLife(/*resume=*/true);  // it has stopped
      case Exit::kStartAgain:
        // Messages and processes of earlier lives may end a later life. The first life meets only
        // faults of the network, and these must never end a generation.
        if (!is_excused_ && CanBegin(job_) && lives_.size() == 1 && deaths_.kill_points.empty()) {
          Violate(absl::StrCat("life 1 is over without a cause: ", exited.why));
        }
        return EndLife(/*resume=*/false);
      case Exit::kFailed:
        // A run may fail for good only because of its disk, its poison, or a job that cannot begin.
        if (disk_.counts().failed == 0 && !IsOutOfRestarts(exited.why) && CanBegin(job_)) {
          Violate(absl::StrCat("the run fails: ", exited.why));
        }
        return EndLife(/*resume=*/true);
    }
  }

  void EndLife(bool resume) {
    if (history_.finished()) {
      over_ = true;
      return;
    }
    const LifeEnd end =
        end_.has_value() ? *end_ : DeathPlan::DrawEnd(shape_.seed, lives_.size() + 1000);
    end_.reset();
    if (victim_ != nullptr) victim_->KillAtAct(0);
    victim_ = nullptr;
    life().Doom();
    for (size_t i = 0; i < life().processes().size(); ++i) {
      SimProcess* process = life().processes()[i].get();
      // All processes die at once if the local launcher kills them. Otherwise each dies late or
      // never, as on machines where nobody can kill them all.
      if (end.all_at_once) process->Kill();
      const ProcessEnd fate = end.OfProcess(i);
      process->StandStill(fate.stands_still_us);
      if (fate.dies_after_us < 0) continue;
      loop_.PostAfter(fate.dies_after_us, [process] { process->Kill(); });
    }
    BeginLifeLater(end.next_after_us, resume, end.other_replicas);
  }

  void CheckEnd() {
    life().CheckEnd();
    const SimTraining& training = life().training();
    result_.validations = life().observers()[0].validations.size();
    result_.non_finite_steps = training.non_finite_steps();
    result_.stopped_early = life().results()[0].stopped_early();
    result_.stopped_by_wish = training.stop_step().has_value();
    result_.restored = training.restored();
    // Counts the samples of all lives, because a life begins with the samples that its cut has
    // seen.
    for (const auto& [pass, seen] : training.seen()) {
      if (pass.first != TRAIN_STREAM) continue;
      for (const auto& [id, times] : seen) result_.trained_samples += times;
    }
  }

  const WorldShape shape_;
  const DeathPlan deaths_;
  const Fault* const fault_;
  const SimFolder folder_;
  JobConfig files_;  // the job's part that names them
  SimLoop loop_;
  SimNetwork network_;
  const SimAddresses addresses_;
  SimDisk disk_;
  const std::unique_ptr<FileSystem> mount_;  // for the checks
  History history_;
  PinningReader other_command_;
  WorldResult result_;
  std::vector<std::unique_ptr<Life>> lives_;  // also those of the dead, until the world ends
  LifeMemory memory_;
  int lives_begun_ = 0;
  int lives_without_progress_ = 0;  // since committed_step_ last grew
  uint64_t committed_step_ = 0;     // the greatest of all committed cuts
  JobConfig job_;                   // of the newest life
  int64_t life_began_at_event_ = 0;
  bool is_excused_ = false;  // the newest life may end by itself
  std::multiset<int64_t> cut_wishes_;
  size_t ends_used_ = 0;
  absl::optional<LifeEnd> end_;   // what was done to the newest life
  SimProcess* victim_ = nullptr;  // dies next, and ends the newest life
  bool poison_is_over_ = false;
  bool next_life_due_ = false;  // the newest life ends, and the next one has not begun
  bool over_ = false;           // END is in the log
};

}  // namespace

WorldResult RunWorld(const WorldShape& shape, const Fault* fault, const NetworkFaults& faults,
                     const DeathPlan& deaths) {
  World world(shape, fault, faults, deaths);
  return world.Run();
}

}  // namespace satrap::simulation
