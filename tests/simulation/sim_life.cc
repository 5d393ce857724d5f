#include "tests/simulation/sim_life.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/run_log.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/hot_methods.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "tests/simulation/lives/sim_absence.h"
#include "tests/simulation/lives/sim_deaths.h"
#include "tests/simulation/sim_cut_reader.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kStopDelayMaxUs = 5000;
constexpr int64_t kTellUs = 2 * 1000 * 1000;

// The last part of a path.
std::string NameOfCut(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  return slash == std::string::npos ? folder : folder.substr(slash + 1);
}

std::string DenseOf(uint64_t steps) { return absl::StrCat("the network after ", steps, " steps"); }

}  // namespace

Life::Life(const Surroundings& surroundings, Start start)
    : surroundings_(surroundings),
      loop_(surroundings.loop),
      number_(start.number),
      shape_(start.shape),
      job_(start.claimed.job),
      cut_(NameOfCut(start.claimed.cut_folder)),
      generation_(start.claimed.generation),
      in_pods_(start.in_pods),
      twin_(start.twin),
      absent_(start.absent),
      from_(surroundings.history->StateOf(cut_)),
      planting_(surroundings.fault, start.shape, surroundings.loop, surroundings.memory),
      crew_({surroundings.loop, surroundings.network, surroundings.addresses, surroundings.disk,
             &planting_, start.shape.max_message_bytes, start.in_pods},
            start.number, generation_, job_, std::move(start.coordinator)),
      coordinator_disk_(std::move(start.disk)),
      claimed_(std::move(start.claimed)),
      observers_(start.shape.ranks),
      pss_(start.shape.ps),
      workers_(start.shape.workers),
      ranks_(start.shape.ranks) {
  // Begins with the validations of the earlier lives up to the cut from which this life begins, so
  // that the final checks cover the whole run.
  for (RecordingObserver& observer : observers_) observer.validations = from_.validations;
  AddMembers();
  std::vector<SimProcess*> ranks;
  for (int i = 0; i < shape_.ranks; ++i) ranks.push_back(crew_.SeatOf(NN_WORKER, i).process);
  training_ =
      std::make_unique<SimTraining>(shape_, loop_, std::move(ranks), TrainingSurroundings(), from_);
}

Life::~Life() = default;

void Life::AddMembers() {
  for (int i = 0; i < shape_.ps; ++i) {
    // A PS listens before it is ready. So once a member has joined, every PS answers.
    crew_.Add(EMBEDDING_PS, i, {[this, i] { MakePs(i); }, [] {}, nullptr});
  }
  for (int i = 0; i < shape_.workers; ++i) {
    crew_.Add(EMBEDDING_WORKER, i,
              {[this, i] { crew_.SeatOf(EMBEDDING_WORKER, i).member->Ready(); },
               [this, i] { MakeWorker(i); }, nullptr});
  }
  for (int i = 0; i < shape_.loaders; ++i) {
    crew_.Add(DATA_LOADER, i,
              {[this, i] { loaders_[i]->Load(); }, [this, i] { loaders_[i]->Begin(); }, nullptr});
    loaders_.push_back(std::make_unique<SimLoader>(i, job_, &crew_, &planting_, loop_));
  }
  for (int i = 0; i < shape_.ranks; ++i) {
    SimCrew::Duties duties;
    duties.load = [this, i] {
      if (job_.stop_seconds() != kCannotBegin) {
        return crew_.SeatOf(NN_WORKER, i).member->Ready();
      }
      surroundings_.cannot_begin();
      crew_.FailureSinkOf(NN_WORKER,
                          i)(absl::FailedPreconditionError("no machine can run this job"));
    };
    duties.begin = [this, i] { MakeRank(i); };
    if (i == 0) {
      duties.wished = [this](const CutWish& wish) {
        // Heartbeats repeat a wish until it is fulfilled, so a wish that comes too early is not
        // lost.
        if (ranks_[0] != nullptr) ranks_[0]->RequestCut(wish);
      };
    }
    crew_.Add(NN_WORKER, i, std::move(duties));
  }
}

void Life::Begin() {
  MakeCoordinator();
  crew_.Start(absent_);
  if (twin_.has_value()) crew_.StartTwin(*twin_);
}

void Life::Wish(const WishRequest& wish) {
  if (!crew_.coordinator()->alive()) return;
  // A wish that comes too late is refused.
  coordinator_->Handle(kWish, rpc::MessageOf(wish), [](const absl::StatusOr<rpc::Message>&) {});
}

bool Life::Leave(uint64_t any) {
  const bool is_coordinator = any % 5 == 0;
  if (!crew_.coordinator()->alive()) return false;
  is_coordinator ? coordinator_->Move() : crew_.Leave(any);
  return is_coordinator;
}

// The engines.

void Life::MakeCoordinator() {
  coordinator_kill_points_ =
      std::make_unique<KillPoints>(job_, 0, generation_, [this] { crew_.coordinator()->Kill(); });
  CoordinatorOptions options;
  options.executor = crew_.coordinator();
  options.disk_executor = crew_.coordinator();
  options.file_system = coordinator_disk_.get();
  options.writer = number_;
  options.compact_after = shape_.compact_after;
  options.in_pods = in_pods_;
  options.kill_points = coordinator_kill_points_.get();
  options.unix_ms = [this] { return loop_->NowUs() / 1000; };
  options.warn = [](const std::string&) {};
  if (absent_.has_value()) options.timeouts.start_timeout_ms = SimAbsence::kLimitUs / 1000;
  coordinator_ = std::make_unique<CoordinatorEngine>(*std::move(claimed_), options);
  // Calls pass the watch before they reach the planted fault, so the watch sees the answers that
  // members get, true or not.
  CoordinatorWatch::Events told = surroundings_.told;
  told.beat = [this](const HeartbeatRequest& beat) { crew_.OnBeat(beat); };
  told.waits = [this] { OnWaiting(); };
  rpc::Handler* handler = crew_.Keep(std::make_unique<CoordinatorWatch>(
      planting_.BeforeCoordinator(coordinator_.get(), job_.run_dir(), coordinator_disk_.get()),
      crew_.coordinator(), [this] { return IsOver(); }, std::move(told)));
  surroundings_.network->Listen(surroundings_.addresses->coordinator, crew_.coordinator(), handler);
}

bool Life::IsOver() const {
  const RunState state = coordinator_->Status().state();
  return state != STARTING && state != RUNNING;
}

// When its generation is over, a coordinator exits after kTellUs at the latest, whether or not
// members were told of the end. If no member has registered, nothing else ends the life.
void Life::OnWaiting() {
  if (!IsOver()) return;
  const int64_t now_us = loop_->NowUs();
  if (!over_since_us_.has_value()) over_since_us_ = now_us;
  if (now_us - *over_since_us_ > kTellUs) crew_.coordinator()->Kill();
}

void Life::MakePs(int i) {
  const SimCrew::Seat& seat = crew_.SeatOf(EMBEDDING_PS, i);
  SimProcess* process = seat.process;
  PsEngine::Options options;
  options.envelope = crew_.envelope();
  options.index = i;
  options.executor = process;
  options.disk_executor = process;
  options.file_system = seat.disk.get();
  options.kill_points = seat.kill_points.get();
  options.first_step = seat.begin.position().step();
  options.frozen_steps = seat.begin.position().frozen_steps();
  options.timeouts = SimTimeouts();
  auto engine = PsEngine::Create(planting_.JobOf(EMBEDDING_PS, job_), options);
  CHECK_OK(engine.status());
  pss_[i] = *std::move(engine);
  if (seat.begin.cut().empty()) {
    pss_[i]->Preload();
    return ServePs(i);
  }
  // The PS loads from its own disk, whose reads may fail or stop with the process. The PS does not
  // listen before it has loaded.
  pss_[i]->Load(seat.begin.cut(), [this, i](const absl::Status& status) {
    if (!status.ok()) return crew_.FailureSinkOf(EMBEDDING_PS, i)(status);
    ServePs(i);
  });
}

void Life::ServePs(int i) {
  SimProcess* process = crew_.SeatOf(EMBEDDING_PS, i).process;
  rpc::Handler* handler =
      planting_.BeforePs(i, pss_[i].get(), crew_.SeatOf(EMBEDDING_PS, i).disk.get());
  // Calls pass the watch before they reach the planted fault. So the watch sees the answers that
  // workers get, but not the calls as the fault changes them.
  if (!shape_.ordered) {
    handler = crew_.Keep(
        std::make_unique<UpdateWatch>(handler, [this, i](uint32_t rank, uint64_t number) {
          training_->tables()->OnUpdateApplied(i, rank, number);
        }));
  }
  constexpr rpc::Method kMethods[] = {rpc::kLookup, rpc::kUpdate, rpc::kApplyStep};
  crew_.Serve(surroundings_.addresses->ps[i], process, kMethods, handler);
  crew_.SeatOf(EMBEDDING_PS, i).member->Ready();
}

void Life::MakeWorker(int i) {
  SimProcess* process = crew_.SeatOf(EMBEDDING_WORKER, i).process;
  EmbeddingWorkerEngine::Options options;
  options.envelope = crew_.envelope();
  options.index = i;
  options.ps = crew_.ConnectToPs(process);
  options.executor = process;
  options.timeouts = SimTimeouts();
  options.on_failure = crew_.FailureSinkOf(EMBEDDING_WORKER, i);
  options.position =
      planting_.PositionOf(EMBEDDING_WORKER, crew_.SeatOf(EMBEDDING_WORKER, i).begin.position());
  options.kill_points = crew_.SeatOf(EMBEDDING_WORKER, i).kill_points.get();
  options.candidates = ItemsOf(shape_);
  if (planting_.fault().one_capacity) {
    options.ordered_capacity = StreamQueue::CapacityScope::kStream;
  }
  auto engine = EmbeddingWorkerEngine::Create(planting_.JobOf(EMBEDDING_WORKER, job_), options);
  CHECK_OK(engine.status());
  workers_[i] = *std::move(engine);
  // Calls pass the watch before they reach the planted fault, which may make calls of its own. So
  // the watch counts only the calls that come to the worker.
  rpc::Handler* handler = crew_.Keep(std::make_unique<PutBatchWatch>(
      planting_.BeforeWorker(workers_[i].get()), crew_.envelope(), &last_epochs_));
  crew_.Serve(surroundings_.addresses->workers[i], process, rpc::kEmbeddingWorkerMethods, handler);
}

void Life::MakeRank(int i) {
  SimProcess* process = crew_.SeatOf(NN_WORKER, i).process;
  const SimCrew::Seat& seat = crew_.SeatOf(NN_WORKER, i);
  // The trainer of rank 0 begins cuts with the cut engine, so this engine is made first.
  if (i == 0 && !MakeCutEngine()) return;
  RankOptions options = MakeRankOptions(job_, i, crew_.envelope(),
                                        planting_.PositionOf(NN_WORKER, seat.begin.position()));
  options.timeouts = SimTimeouts();
  options.has_valid = shape_.has_valid;
  options.has_test = true;
  planting_.ChangeOptions(&options);
  ranks_[i] = std::make_unique<RankEngine>(
      options, process, planting_.ChannelsOf(i, crew_.ConnectToWorkers(process)),
      planting_.TrainerOf(i, training_->trainer(i)), planting_.ObserverOf(&observers_[i]),
      crew_.FailureSinkOf(NN_WORKER, i),
      [this, i, process](const RunResult& result) {
        // If a rank was killed within this task, its code runs on to its end, but must report
        // nothing.
        if (!process->alive()) return;
        results_.push_back(planting_.ResultOf(result));
        if (i == 0) crew_.SeatOf(NN_WORKER, 0).member->Finish(result);
      },
      seat.kill_points.get());
  ranks_[i]->Start();
  if (i == shape_.stop_rank) WishForStop(from_.steps);
}

// Returns whether rank 0 can begin.
bool Life::MakeCutEngine() {
  const SimCrew::Seat& seat = crew_.SeatOf(NN_WORKER, 0);
  if (!cut_.empty()) {
    const auto dense = ReadDense(seat.begin.cut(), seat.disk.get());
    if (!dense.ok()) {
      crew_.FailureSinkOf(NN_WORKER, 0)(dense.status());
      return false;
    }
    // The network is simulated: its saved state is only a step, which shows whether the state is of
    // the same cut as the rows.
    if (*dense != DenseOf(from_.steps)) {
      surroundings_.violated(absl::StrCat(cut_, " of step ", from_.steps, " has ", *dense));
    }
  }
  CutEngine::Options options;
  options.job = job_;
  options.envelope = crew_.envelope();
  options.order_fingerprint = seat.member->last_answer().order_fingerprint();
  options.ledger = planting_.LedgerOf(NN_WORKER, seat.begin.ledger());
  options.timeouts = SimTimeouts();
  options.executor = seat.process;
  options.disk_executor = seat.process;
  options.file_system = seat.disk.get();
  options.kill_points = seat.kill_points.get();
  options.embedding_ps = crew_.ConnectToPs(seat.process);
  options.coordinator = crew_.ConnectToCoordinator(seat.process);
  auto cuts = CutEngine::Create(options);
  CHECK_OK(cuts.status());
  cuts_ = *std::move(cuts);
  return true;
}

// What the training uses.

SimTraining::Surroundings Life::TrainingSurroundings() {
  SimTraining::Surroundings surroundings;
  surroundings.violated = surroundings_.violated;
  surroundings.counted = [this](uint64_t steps) {
    CheckQueueCapacity();
    WishForStop(steps);
  };
  surroundings.begin_cut = [this](CutPlan plan, std::vector<LedgerState> released,
                                  std::function<void()> marked,
                                  std::function<void(absl::StatusOr<CutOutcome>)> ended) {
    BeginCut(std::move(plan), std::move(released), std::move(marked), std::move(ended));
  };
  surroundings.restore = [this](const std::string& cut, std::function<void(absl::Status)> done) {
    Restore(cut, std::move(done));
  };
  return surroundings;
}

void Life::BeginCut(CutPlan plan, std::vector<LedgerState> released, std::function<void()> marked,
                    std::function<void(absl::StatusOr<CutOutcome>)> ended) {
  // If rank 0 has died in the middle of the collective, the collective may still go on for the
  // other ranks and get here.
  if (!crew_.SeatOf(NN_WORKER, 0).process->alive()) return;
  SimTraining::State state = training_->state();
  state.validations = observers_[0].validations;
  // There is only one thread, so this is the moment of the mark: all ranks are idle, and nothing
  // runs before Begin.
  surroundings_.history->OnMark(CutName(generation_, plan.number), std::move(state));
  cuts_->Begin(std::move(plan), std::move(released), DenseOf(training_->counted_steps()),
               std::move(marked), std::move(ended));
}

void Life::Restore(const std::string& cut, std::function<void(absl::Status)> done) {
  // Later Lookups check whether the rows of that cut are in the tables afterwards.
  if (!surroundings_.history->IsMarked(cut)) {
    return surroundings_.violated(absl::StrCat("'", cut, "' is loaded, which was never marked"));
  }
  training_->tables()->SetRestored(surroundings_.history->StateOf(cut).tables);
  cuts_->embedding_ps()->LoadTables(absl::StrCat(CheckpointsDir(job_.run_dir()), "/", cut),
                                    std::move(done));
}

// Checks the limit on the parts that an embedding worker has accepted but not handed out.
void Life::CheckQueueCapacity() {
  // Validation and test have one queue each, in addition to those of the train stream.
  const uint64_t queues = 2 + (shape_.ordered ? shape_.lanes * shape_.ranks : 1);
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;  // it has not begun
    const uint64_t parts = worker->progress().accepted_parts;
    if (parts > queues * shape_.queue_capacity_parts) {
      surroundings_.violated(absl::StrCat("an embedding worker holds ", parts, " parts in ", queues,
                                          " queues of ", shape_.queue_capacity_parts));
    }
  }
}

void Life::WishForStop(uint64_t steps) {
  if (shape_.stop_rank < 0 || steps != static_cast<uint64_t>(shape_.stop_after_steps)) return;
  // Makes the request somewhat later, so that it may fall into an exchange, an evaluation or a cut,
  // and not only between two steps.
  crew_.SeatOf(NN_WORKER, shape_.stop_rank)
      .process->PostAfter(static_cast<int64_t>(loop_->random()->Below(kStopDelayMaxUs)), [this] {
        stop_wished_at_ = training_->counted_steps();
        ranks_[shape_.stop_rank]->RequestStop();
      });
}

// The end.

void Life::CheckEnd() {
  FinishedWorld finished;
  finished.shape = &shape_;
  finished.training = training_.get();
  finished.steps_before = from_.steps;
  finished.validations_before = from_.validations.size();
  finished.results = &results_;
  finished.observers = &observers_;
  finished.stop_wished_at = stop_wished_at_;
  finished.last_epochs = last_epochs_;
  // In the end the last cut must hold all training, including the last steps.
  const History& history = *surroundings_.history;
  if (history.StateOf(history.newest_cut()).steps != training_->counted_steps()) {
    surroundings_.violated(absl::StrCat("the last cut, ", history.newest_cut(), ", is not of step ",
                                        training_->counted_steps()));
  }
  const std::string& model = results_[0].model_dir();
  const std::string& saved = model.empty() ? cut_ : model;
  if (surroundings_.history->IsMarked(saved)) {
    finished.saved_step = surroundings_.history->StateOf(saved).steps;
  }
  for (const auto& worker : workers_) finished.workers.push_back(worker.get());
  for (const auto& ps : pss_) finished.pss.push_back(ps.get());
  finished.read_row = [this](int ps, uint32_t table, uint64_t key) {
    return ReadRow(ps, table, key);
  };
  finished.violated = surroundings_.violated;
  CheckFinishedWorld(finished);
}

absl::optional<std::vector<float>> Life::ReadRow(int ps, uint32_t table, uint64_t key) {
  return ReadRowOf(pss_[ps].get(), crew_.envelope(), rows_read_++, table, key, loop_);
}

}  // namespace satrap::simulation
