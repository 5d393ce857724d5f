#include "tests/simulation/sim_world.h"

#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/cut_name.h"
#include "deploy/coordinator/claim/generation_claim.h"
#include "tests/simulation/lives/sim_absence.h"
#include "tests/simulation/lives/sim_log.h"
#include "tests/simulation/lives/sim_rival.h"
#include "tests/simulation/lives/sim_submissions.h"
#include "tests/simulation/machine/sim_disk.h"
#include "tests/simulation/sim_crew.h"
#include "tests/simulation/sim_cut_reader.h"
#include "tests/simulation/sim_files.h"
#include "tests/simulation/sim_history.h"
#include "tests/simulation/sim_job.h"
#include "tests/simulation/sim_life.h"
#include "tests/simulation/sim_pinning_reader.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kMaxEvents = 4000000;
constexpr uint64_t kRunId = 0x5a7a95a7a95a7a95;
constexpr char kRunDir[] = "/run";
// Only lives without progress count, because a process may die after every step. 20 are enough:
// without poison, only a few lives of a world end early, and with poison max_restarts is at most 4.
// A resume with a job that cannot begin does not count.
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
            [this](const std::string& cut) { return cuts_->Read(FolderOfCut(kRunDir, cut)); },
            [this](const std::string& cut) {
              return mount_->Open(FolderOfCut(kRunDir, cut) + "/manifest").ok();
            },
            [this](std::string what) { Violate(std::move(what)); }),
        submissions_(deaths, fault, history_.ends(),
                     [this](std::string what) { Violate(std::move(what)); }),
        absence_(deaths_, [this](std::string what) { Violate(std::move(what)); }),
        other_command_(shape.seed, AroundOtherCommand()) {
    WriteFiles(shape_, folder_, &files_);  // real ones; only the disk of the run is simulated
    job_ = JobOf(shape_);
    cuts_ = std::make_unique<CutReader>(job_, mount_.get());
    cut_wishes_.insert(deaths_.cut_wishes.begin(), deaths_.cut_wishes.end());
    moves_ = deaths_.moves;
  }

  // Queued tasks hold callbacks into the engines, so they are dropped first.
  ~World() { loop_.DropTasks(); }

  WorldResult Run() {
    CHECK_OK(mount_->CreateFolders(kRunDir));
    CHECK_OK(mount_->SyncFolder("/"));
    BeginLife(/*resume=*/false, /*other_replicas=*/false);
    const auto ended = [this] {
      other_command_.Act(loop_.events());
      // Between two lives only processes of earlier lives and late messages act.
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
    // The checks ask the PSs for their rows. A dead PS does not answer, nor does one of a life that
    // is over: it is suspended or about to die. Then only the cuts were checked.
    const bool answers = !life().has_dead() && !life().is_doomed();
    if (result_.violations.empty() && life().finished() && answers) {
      life().CheckEnd();
      AddTraining(life(), &result_);
    }
    return result_;
  }

 private:
  Life& life() { return *lives_.back(); }  // the newest
  void Violate(std::string what) {
    if (result_.violations.size() < 20) result_.violations.push_back(std::move(what));
  }

  JobConfig JobOf(const WorldShape& shape) const {
    return SimJob(shape, files_, kRunDir, deaths_.max_restarts, deaths_.kill_points);
  }

  PinningReader::Surroundings AroundOtherCommand() {
    return {mount_.get(), [this] { return FolderOfCut(kRunDir, history_.newest_cut()); },
            [this](const std::string& folder) { return cuts_->Read(folder).status(); },
            [this](std::string what) { Violate(std::move(what)); }};
  }

  void TakeLog() {
    const auto log = log_.Read();
    if (!log.ok()) return Violate(absl::StrCat("the log: ", log.status().ToString()));
    if (disk_.counts().failed > 0) history_.OnDiskFailure();
    history_.OnLog(*log, /*acknowledged=*/true);
    result_.compacted |= log->compacted_number > 0;
    submissions_.CheckRestarts(log->entries);
    absence_.OnLog(*log);
    for (const auto& entry : log->entries) {
      if (entry->message.cut().step() <= committed_step_) continue;
      committed_step_ = entry->message.cut().step();
      lives_without_progress_ = 0;
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
    const int64_t rival_at = deaths_.RivalAt(number);
    result_.rival_claims += rival_at > 0 ? 1 : 0;
    return ClaimMaybeAgainst([this, number] { return NewClaimer(number); }, rival_at, request,
                             [this](std::string what) { Violate(std::move(what)); });
  }

  // A job without train files is not valid, so nobody can resume with it, and its end is for good.
  bool HasNoFiles() const { return files_.data().train_files_size() == 0; }
  bool CannotResume() { return over_ = over_ || HasNoFiles(); }

  // Begins a life in the same way as a launcher starts a generation. `resume`: the run had ended,
  // and somebody resumes it.
  void BeginLife(bool resume, bool other_replicas) {
    if (++lives_without_progress_ > kMostLivesWithoutProgress) {
      return Violate(absl::StrCat("the run begins again and again from step ", committed_step_));
    }
    const int number = ++lives_begun_;
    ClaimRequest request;
    if (HasNoFiles()) resume = other_replicas = false;
    request.job = JobOf(other_replicas ? shape_.WithOtherReplicas(number) : ShapeOf(shape_, job_));
    // If false, the life uses the job in the log, for example the one that a scale has made.
    request.next_job = number > 1 && (resume || other_replicas);
    if (request.next_job && deaths_.ResumesWithWrongJob(number)) {
      request.job.set_stop_seconds(kCannotBegin);
      --lives_without_progress_;  // not the run's fault, and one may try such jobs often
    }
    request.ended.set_text("a death");
    TakeUnacknowledgedLog("before a claim");
    // Only the coordinator's own pod knows how the coordinator ended, unless it has left that pod.
    moved_ = moved_ && history_.generation() == generation_ && coordinator_left_ != generation_;
    if (moved_) request.ended.set_why(Ending::MOVED);
    request.writer = static_cast<uint64_t>(number);
    request.run_id = kRunId;
    request.unix_ms = loop_.NowUs() / 1000;
    request.compact_after = shape_.compact_after;
    if (fault_ != nullptr && fault_->before_claim != nullptr) {
      fault_->before_claim(kRunDir, mount_.get());
    }
    submissions_.Fill(number, mount_.get(), &request);
    Claimer claimer = Claim(number, request);
    if (!claimer.claimed.ok()) return OnClaimFailed(claimer.claimed.status(), other_replicas);
    submissions_.OnClaimed();
    moved_ = false;
    TakeLog();
    if (over_ = history_.finished(); over_) return;
    if (const EndEntry* end = claimer.claimed->log.end()) return OnEndFound(end->ending());
    submissions_.WakeStale(number, request, mount_.get());
    if (number > 1) history_.CheckNewestAgain();
    job_ = claimer.claimed->job;
    if (!CanBegin(job_)) ++result_.jobs_that_cannot_begin;
    const auto absent = absence_.Begin(number, *claimer.claimed, loop_.NowUs());
    if (absent.has_value()) {
      ++result_.absences;
      --lives_without_progress_;  // it fails in time
      history_.OnCannotBegin(claimer.claimed->generation);
    }
    Life::Start start{number,
                      ShapeOf(shape_, job_),
                      std::move(claimer.process),
                      std::move(claimer.disk),
                      *std::move(claimer.claimed),
                      deaths_.in_pods,
                      absent.has_value() ? absl::nullopt : deaths_.TwinOf(number),
                      absent};
    life_began_at_event_ = loop_.events();
    // From here on the life must not end without a reason.
    is_excused_ = start.twin.has_value() && start.twin->EndsLife();
    result_.twins += start.twin.has_value() ? 1 : 0;
    generation_ = start.claimed.generation;
    lives_.push_back(std::make_unique<Life>(Around(generation_), std::move(start)));
    life().Begin();
  }

  Life::Surroundings Around(uint64_t generation) {
    Life::Surroundings surroundings;
    surroundings.loop = &loop_;
    surroundings.network = &network_;
    surroundings.addresses = &addresses_;
    surroundings.disk = &disk_;
    surroundings.history = &history_;
    surroundings.fault = fault_;
    surroundings.memory = &memory_;
    surroundings.told = WhatIsTold(generation);
    surroundings.cannot_begin = [this, generation] { history_.OnCannotBegin(generation); };
    surroundings.violated = [this](std::string what) { Violate(std::move(what)); };
    return surroundings;
  }

  CoordinatorWatch::Events WhatIsTold(uint64_t generation) {
    CoordinatorWatch::Events told;
    told.acknowledged = [this](const std::string& cut) {
      TakeLog();
      if (!cut.empty() && !history_.IsCommitted(cut)) {
        Violate(absl::StrCat(cut, " was said to be committed, and the log has no entry of it"));
      }
      if (!deaths_.dies_after_stop_cut || !history_.ends()->left_for_stop()) return;
      is_excused_ = true;
      life().processes()[0]->Kill();
    };
    told.abandoned = [this](const std::string& cut) { history_.OnAbandoned(cut); };
    told.runs = [this, generation] {
      TakeUnacknowledgedLog("when a generation runs");
      history_.OnRuns(generation);
    };
    told.ended = [this, generation](RunState state) {
      TakeUnacknowledgedLog("at the end of a generation");
      history_.OnEnded(generation);
      // If writes to the disk fail, a launcher may be told of an end that is not in the log.
      if (state == RESTARTING || (!deaths_.in_pods && disk_.counts().failed > 0)) return;
      history_.ends()->OnEndTold(generation, state);
    };
    told.heard = [this](const HeartbeatRequest& beat) { absence_.OnHeard(beat, loop_.NowUs()); };
    told.leaving = [this](uint64_t of) { leaving_.insert(of); };
    told.moved = [this, generation](bool is_over) {
      if (leaving_.count(generation) == 0)
        Violate("a generation has moved, and no process of it leaves its machine");
      if (!is_over) return;
      history_.ends()->OnMoved(generation,
                               coordinator_left_ != generation || disk_.counts().failed == 0);
      // Coordinators of earlier generations may still tell their members that a process has moved.
      moved_ |= generation == generation_;
    };
    return told;
  }

  void OnEndFound(const Ending& how) {
    if (IsOutOfRestarts(how.text())) poison_is_over_ = true;
    absence_.OnFailed();
    if (CannotResume()) return;
    BeginLifeLater(1000, /*resume=*/true, /*other_replicas=*/false);
  }

  void OnClaimFailed(const absl::Status& status, bool other_replicas) {
    submissions_.OnClaimFailed();
    // The run was resumed by somebody who did not know that END had been linked.
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
      if (CannotResume()) return;
      // All claims of a generation may fail only if the disk fails; then the launcher tries again.
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
    // Look for exits first: the process of a member that exits would otherwise look killed.
    if (life().exited().has_value()) return OnExit(*life().exited());
    if (life().has_dead()) return EndLife(/*resume=*/false);
    if (history_.finished()) {
      over_ = life().finished();
      return;
    }
    // Until the victim dies, do nothing else to the life, because that would hide the drawn end.
    if (victim_ != nullptr) return;
    const auto torn = absence_.Tear(lives_begun_, loop_.NowUs(), disk_.counts().failed > 0);
    if (torn.has_value()) return Apply(*torn);
    const int64_t events = loop_.events() - life_began_at_event_;
    while (!cut_wishes_.empty() && *cut_wishes_.begin() <= loop_.events()) {
      cut_wishes_.erase(cut_wishes_.begin());
      life().Wish(WishOf(WishRequest::CUT));
    }
    while (!moves_.empty() && moves_.front().first <= loop_.events()) {
      is_excused_ = true;
      if (life().Leave(moves_.front().second)) leaving_.insert(coordinator_left_ = generation_);
      moves_.erase(moves_.begin());
      ++result_.moves;
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
        // Processes of earlier lives that still run are on the same machine, so they die, too.
        for (const auto& any : lives_) {
          any->Doom();
          for (const auto& process : any->processes()) process->Kill();
        }
        other_command_.Die();
        disk_.LosePower();
        history_.OnPowerLoss();
        // Read the log before a claim adds to it, so that a lost acknowledged entry is found here.
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
        history_.ends()->OnStopWish();
        return life().Wish(WishOf(WishRequest::STOP));
      case LifeEnd::kScaleWish:
        return life().Wish(WishOf(WishRequest::SCALE));
    }
  }

  void TakeUnacknowledgedLog(const char* when) {
    const auto log = log_.Read();
    if (!log.ok()) return Violate(absl::StrCat(when, ": ", log.status().ToString()));
    if (disk_.counts().failed > 0) history_.OnDiskFailure();
    history_.OnLog(*log, /*acknowledged=*/false);
  }

  void OnExit(const SimCrew::Exited& exited) {
    switch (exited.exit) {
      case Exit::kDone:
        return history_.finished() ? EndLife(false) : EndLife(/*resume=*/true);  // it has stopped
      case Exit::kStartAgain:
        // Messages and processes of earlier lives may end a later life. In the first life only the
        // network has faults, and these must never end a generation.
        if (!is_excused_ && CanBegin(job_) && lives_.size() == 1 && deaths_.kill_points.empty() &&
            !life().MayLosePlace()) {
          Violate(absl::StrCat("life 1 is over without a cause: ", exited.why));
        }
        return EndLife(/*resume=*/false);
      case Exit::kFailed:
        if (IsOutOfRestarts(exited.why)) poison_is_over_ = true;
        // Only the disk, poison, a wrong job or a missing member may end a run for good.
        if (disk_.counts().failed == 0 && !IsOutOfRestarts(exited.why) && CanBegin(job_) &&
            !absence_.lacks_member()) {
          Violate(absl::StrCat("the run fails: ", exited.why));
        }
        absence_.OnFailed();
        return EndLife(/*resume=*/true);
    }
  }

  void EndLife(bool resume) {
    if (over_ = history_.finished(); over_) return;
    const LifeEnd end =
        end_.has_value() ? *end_ : DeathPlan::DrawEnd(shape_.seed, lives_.size() + 1000);
    end_.reset();
    if (victim_ != nullptr) victim_->KillAtAct(0);
    victim_ = nullptr;
    life().Doom();
    EndProcesses(end, life().processes(), &loop_);
    // A coordinator that is started again does not know that the run has ended, but its log does.
    if (resume && deaths_.StartsAgainAfterEnd(lives_begun_)) {
      return BeginLifeLater(end.next_after_us, /*resume=*/false, /*other_replicas=*/false);
    }
    BeginLifeLater(end.next_after_us, resume, end.other_replicas);
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
  SimLogReader log_{kRunDir, mount_.get()};
  std::unique_ptr<CutReader> cuts_;
  History history_;
  SimSubmissions submissions_;
  SimAbsence absence_;
  PinningReader other_command_;
  WorldResult result_;
  std::vector<std::unique_ptr<Life>> lives_;  // also those of the dead, until the world ends
  LifeMemory memory_;
  int lives_begun_ = 0;
  int lives_without_progress_ = 0;  // since committed_step_ last grew
  uint64_t committed_step_ = 0;     // the greatest of all committed cuts
  JobConfig job_;                   // of the newest life
  int64_t life_began_at_event_ = 0;
  bool is_excused_ = false;        // the newest life may end by itself
  std::set<uint64_t> leaving_;     // generations of which a process has said that it leaves
  uint64_t generation_ = 0;        // of the newest life
  uint64_t coordinator_left_ = 0;  // the last generation whose coordinator was asked to go
  bool moved_ = false;             // the life before has told so, and the next one has not begun
  std::multiset<int64_t> cut_wishes_;
  std::vector<std::pair<int64_t, uint64_t>> moves_;
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
