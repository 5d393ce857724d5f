#include "tests/simulation/sim_life.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/run_log.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/reliable_call.h"
#include "data_loader/engine/split_lease_client.h"
#include "data_loader/source/run_files.h"
#include "nn_worker/checkpoint/saved_model.h"
#include "tests/simulation/sim_cut_reader.h"
#include "tests/simulation/sim_watch.h"

namespace satrap::simulation {
namespace {

constexpr int kMaxWorkers = 3;
constexpr int kMaxPss = 2;
constexpr int64_t kStopDelayMaxUs = 5000;
constexpr int64_t kStartingHeartbeatMs = 20;

const char* NameOf(Role role) {
  switch (role) {
    case COORDINATOR:
      return "coordinator";
    case DATA_LOADER:
      return "loader";
    case EMBEDDING_WORKER:
      return "embedding worker";
    case EMBEDDING_PS:
      return "embedding PS";
    case NN_WORKER:
      return "rank";
  }
  return "";
}

// Short, so that a simulated minute holds many retries. Silence never ends a call: what the network
// loses must come through in the end.
rpc::RpcTimeouts SimTimeouts() {
  rpc::RpcTimeouts timeouts;
  timeouts.attempt_timeout_ms = 60;
  timeouts.hold_ms = 30;
  timeouts.silence_timeout_ms = kTimeLimitUs;
  return timeouts;
}

// The last part of a path.
std::string NameOfCut(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  return slash == std::string::npos ? folder : folder.substr(slash + 1);
}

std::string DenseOf(uint64_t steps) { return absl::StrCat("the network after ", steps, " steps"); }

// Tells `acknowledged` of each answer that lets its reader rely on the log.
class AnswerWatch final : public rpc::Handler {
 public:
  using Acknowledged = std::function<void(const std::string& cut)>;

  AnswerWatch(rpc::Handler* coordinator, SimProcess* process, Acknowledged acknowledged)
      : coordinator_(coordinator), process_(process), acknowledged_(std::move(acknowledged)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == kCommitCut) && !(method == kFinish)) {
      return coordinator_->Handle(method, std::move(request), std::move(respond));
    }
    const bool is_commit = method == kCommitCut;
    CommitCutRequest commit;
    if (is_commit) CHECK(commit.ParseFromString(request.header));
    coordinator_->Handle(
        method, std::move(request),
        [this, is_commit, cut = commit.cut(),
         respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
          const bool holds = answer.ok() && (!is_commit || rpc::OutcomeOf(*answer) == OUTCOME_DONE);
          if (holds && process_->alive()) acknowledged_(cut);
          respond(std::move(answer));
        });
  }

 private:
  rpc::Handler* const coordinator_;
  SimProcess* const process_;
  const Acknowledged acknowledged_;
};

}  // namespace

SimAddresses::SimAddresses(SimNetwork* network) : coordinator(network->NewAddress()) {
  for (int i = 0; i < kMaxWorkers; ++i) workers.push_back(network->NewAddress());
  for (int i = 0; i < kMaxPss; ++i) ps.push_back(network->NewAddress());
}

Life::Life(const Surroundings& surroundings, Start start)
    : surroundings_(surroundings),
      loop_(surroundings.loop),
      number_(start.number),
      shape_(start.shape),
      job_(start.claimed.job),
      cut_(NameOfCut(start.claimed.cut_folder)),
      generation_(start.claimed.generation),
      from_(surroundings.history->StateOf(cut_)),
      planting_(surroundings.plant, start.shape, surroundings.loop, surroundings.memory),
      coordinator_disk_(std::move(start.disk)),
      claimed_(std::move(start.claimed)),
      observers_(start.shape.ranks),
      pss_(start.shape.ps),
      workers_(start.shape.workers),
      leases_(start.shape.loaders),
      streams_(start.shape.loaders),
      loaders_(start.shape.loaders),
      ranks_(start.shape.ranks) {
  for (RecordingObserver& observer : observers_) observer.validations = from_.validations;
  processes_.push_back(std::move(start.coordinator));
  coordinator_process_ = processes_.back().get();
  for (int i = 0; i < shape_.ps; ++i) {
    NewSeat(
        EMBEDDING_PS, i, [this, i] { MakePs(i); }, [] {});
  }
  for (int i = 0; i < shape_.workers; ++i) {
    NewSeat(
        EMBEDDING_WORKER, i, [this, i] { MemberOf(EMBEDDING_WORKER, i)->Ready(); },
        [this, i] { MakeWorker(i); });
  }
  for (int i = 0; i < shape_.loaders; ++i) {
    NewSeat(
        DATA_LOADER, i, [this, i] { FixFiles(i); }, [this, i] { MakeLoader(i); });
  }
  for (int i = 0; i < shape_.ranks; ++i) {
    NewSeat(
        NN_WORKER, i, [this, i] { MemberOf(NN_WORKER, i)->Ready(); }, [this, i] { MakeRank(i); });
  }
  std::vector<SimProcess*> ranks;
  for (int i = 0; i < shape_.ranks; ++i) ranks.push_back(ProcessOf(NN_WORKER, i));
  training_ =
      std::make_unique<SimTraining>(shape_, loop_, std::move(ranks), TrainingSurroundings(), from_);
}

Life::~Life() = default;

void Life::Begin() {
  MakeCoordinator();
  for (const auto& [id, seat] : seats_) seat.member->Start();
}

SimProcess* Life::NewProcess(const char* role, int index) {
  processes_.push_back(std::make_unique<SimProcess>(
      loop_, number_, absl::StrCat(role, " ", index, " of life ", number_)));
  return processes_.back().get();
}

rpc::Handler* Life::Keep(std::unique_ptr<rpc::Handler> handler) {
  handlers_.push_back(std::move(handler));
  return handlers_.back().get();
}

rpc::Channel* Life::Connect(SimNetwork::Address to, SimProcess* from) {
  channels_.push_back(surroundings_.network->Connect(to, from));
  return channels_.back().get();
}

std::vector<rpc::Channel*> Life::ChannelsToWorkers(SimProcess* from) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < shape_.workers; ++i) {
    channels.push_back(Connect(surroundings_.addresses->workers[i], from));
  }
  return channels;
}

// Makes a process and what it is as a member of the run. `load` runs when it has registered, `begin`
// when all members are ready.
void Life::NewSeat(Role role, int index, std::function<void()> load, std::function<void()> begin) {
  Seat& seat = seats_[{role, index}];
  seat.process = NewProcess(NameOf(role), index);
  SimMember::Options options;
  Member* member = options.registration.mutable_member();
  member->set_role(role);
  member->set_index(index);
  member->set_address("simulated");
  const int incarnation = number_ * 1000 + static_cast<int>(role) * 100 + index;
  member->set_pid(incarnation);
  options.registration.set_incarnation(incarnation);
  options.process = seat.process;
  options.coordinator = Connect(surroundings_.addresses->coordinator, seat.process);
  options.starting_period_ms = kStartingHeartbeatMs;
  seat.disk = planting_.DiskOf(role, surroundings_.disk->Mount(seat.process));
  seat.kill_points = std::make_unique<KillPoints>(job_, index, generation_,
                                                  [process = seat.process] { process->Kill(); });
  SimMember::Events events;
  events.registered = [this, &seat, load = std::move(load)](const RegisterAnswer& answer) {
    seat.begin = answer;
    // The next life's coordinator took this process for one of its own, which it is not: it does
    // nothing but send heartbeats.
    if (answer.envelope().generation() != generation_) return;
    envelope_ = answer.envelope();
    planting_.SetEnvelope(envelope_);
    load();
  };
  events.joined = [this, &seat, begin = std::move(begin)] {
    if (seat.begin.envelope().generation() == generation_) begin();
  };
  if (role == NN_WORKER && index == 0) {
    events.wished = [this](const CutWish& wish) {
      if (ranks_[0] != nullptr) ranks_[0]->RequestCut(wish);
    };
  }
  events.exited = [this](Exit exit, const std::string& why) {
    if (!doomed_ && !exited_.has_value()) exited_ = Exited{exit, why};
  };
  seat.member = std::make_unique<SimMember>(options, std::move(events));
}

SimProcess* Life::ProcessOf(Role role, int index) const { return seats_.at({role, index}).process; }

SimMember* Life::MemberOf(Role role, int index) const {
  return seats_.at({role, index}).member.get();
}

bool Life::has_dead() const {
  for (const auto& process : processes_) {
    if (!process->alive()) return true;
  }
  return false;
}

void Life::Wish(const WishRequest& wish) {
  if (!coordinator_process_->alive()) return;
  // A wish that comes too late is refused.
  coordinator_->Handle(kWish, rpc::MessageOf(wish), [](const absl::StatusOr<rpc::Message>&) {});
}

std::function<void(absl::Status)> Life::FailureSinkOf(Role role, int index) {
  Seat& seat = seats_.at({role, index});
  return [this, &seat](const absl::Status& status) {
    if (seat.process->alive()) seat.member->Fail(status);
  };
}

// The engines.

void Life::MakeCoordinator() {
  coordinator_kill_points_ =
      std::make_unique<KillPoints>(job_, 0, generation_, [this] { coordinator_process_->Kill(); });
  CoordinatorOptions options;
  options.executor = coordinator_process_;
  options.disk_executor = coordinator_process_;
  options.file_system = coordinator_disk_.get();
  options.writer = number_;
  options.kill_points = coordinator_kill_points_.get();
  options.unix_ms = [this] { return loop_->NowUs() / 1000; };
  options.warn = [](const std::string&) {};
  coordinator_ = std::make_unique<CoordinatorEngine>(*std::move(claimed_), options);
  rpc::Handler* handler =
      Keep(std::make_unique<AnswerWatch>(planting_.BeforeCoordinator(coordinator_.get()),
                                         coordinator_process_, surroundings_.acknowledged));
  surroundings_.network->Listen(surroundings_.addresses->coordinator, coordinator_process_,
                                handler);
}

void Life::MakePs(int i) {
  const Seat& seat = seats_.at({EMBEDDING_PS, i});
  SimProcess* process = seat.process;
  PsEngine::Options options;
  options.envelope = envelope_;
  options.index = i;
  options.executor = process;
  options.disk_executor = process;
  options.file_system = seat.disk.get();
  options.kill_points = seat.kill_points.get();
  options.first_step = seat.begin.position().step();
  options.timeouts = SimTimeouts();
  auto engine = PsEngine::Create(planting_.JobOf(EMBEDDING_PS, job_), options);
  CHECK_OK(engine.status());
  pss_[i] = *std::move(engine);
  if (seat.begin.cut().empty()) {
    pss_[i]->Preload();
    return ServePs(i);
  }
  pss_[i]->Load(seat.begin.cut(), [this, i](const absl::Status& status) {
    if (!status.ok()) return FailureSinkOf(EMBEDDING_PS, i)(status);
    ServePs(i);
  });
}

void Life::ServePs(int i) {
  SimProcess* process = ProcessOf(EMBEDDING_PS, i);
  rpc::Handler* handler =
      planting_.BeforePs(i, pss_[i].get(), seats_.at({EMBEDDING_PS, i}).disk.get());
  // Outermost, so that it sees what workers are told, not what a planted fault does.
  if (!shape_.ordered) {
    handler =
        Keep(std::make_unique<UpdateWatch>(handler, [this, i](uint32_t rank, uint64_t number) {
          training_->tables()->OnUpdateApplied(i, rank, number);
        }));
  }
  surroundings_.network->Listen(surroundings_.addresses->ps[i], process, handler);
  MemberOf(EMBEDDING_PS, i)->Ready();
}

void Life::MakeWorker(int i) {
  SimProcess* process = ProcessOf(EMBEDDING_WORKER, i);
  EmbeddingWorkerEngine::Options options;
  options.envelope = envelope_;
  options.index = i;
  for (int ps = 0; ps < shape_.ps; ++ps) {
    options.ps.push_back(Connect(surroundings_.addresses->ps[ps], process));
  }
  options.executor = process;
  options.timeouts = SimTimeouts();
  options.on_failure = FailureSinkOf(EMBEDDING_WORKER, i);
  options.position =
      planting_.PositionOf(EMBEDDING_WORKER, seats_.at({EMBEDDING_WORKER, i}).begin.position());
  options.kill_points = seats_.at({EMBEDDING_WORKER, i}).kill_points.get();
  if (planting_.plant() == Plant::kCapacityPerWorker) {
    options.ordered_capacity = StreamQueue::CapacityScope::kStream;
  }
  auto engine = EmbeddingWorkerEngine::Create(planting_.JobOf(EMBEDDING_WORKER, job_), options);
  CHECK_OK(engine.status());
  workers_[i] = *std::move(engine);
  rpc::Handler* handler = Keep(std::make_unique<PutBatchWatch>(
      planting_.BeforeWorker(workers_[i].get()), envelope_, &last_epochs_));
  surroundings_.network->Listen(surroundings_.addresses->workers[i], process, handler);
}

// The loaders' files are real; their lists go to the coordinator.
void Life::FixFiles(int i) {
  const auto listed = ListRunFiles(planting_.JobOf(DATA_LOADER, job_));
  CHECK_OK(listed.status());
  AskForFiles(i, *listed);
}

void Life::AskForFiles(int i, const SplitList& listed) {
  FixSplitsRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_loader(i);
  *request.mutable_splits() = listed;
  Connect(surroundings_.addresses->coordinator, ProcessOf(DATA_LOADER, i))
      ->Call(
          kFixSplits, rpc::MessageOf(request), SimTimeouts().attempt_timeout_ms,
          [this, i, listed](const absl::StatusOr<rpc::Message>& answer) {
            if (absl::IsUnavailable(answer.status()) || absl::IsDeadlineExceeded(answer.status())) {
              return AskForFiles(i, listed);
            }
            if (!answer.ok()) return FailureSinkOf(DATA_LOADER, i)(answer.status());
            FixSplitsAnswer fixed;
            CHECK(fixed.ParseFromString(answer->header));
            ListFiles(i, fixed.splits());
          });
}

void Life::ListFiles(int i, const SplitList& fixed) {
  const RegisterAnswer& registered = seats_.at({DATA_LOADER, i}).begin;
  LoaderStreams::Begin begin;
  begin.generation = generation_;
  begin.position = planting_.PositionOf(DATA_LOADER, registered.position());
  begin.ledger = planting_.LedgerOf(DATA_LOADER, registered.ledger());
  begin.fix_files = [&fixed](const SplitList&) { return fixed; };
  JobConfig job = planting_.JobOf(DATA_LOADER, job_);
  job.clear_run_dir();  // the run is on the simulated disk, and quarantine files are not checked
  auto streams = LoaderStreams::Make(
      job, i, [](const std::string&) {}, begin);
  if (!streams.ok()) return FailureSinkOf(DATA_LOADER, i)(streams.status());
  streams_[i] = *std::move(streams);
  MemberOf(DATA_LOADER, i)->Ready();
}

void Life::MakeLoader(int i) {
  SimProcess* process = ProcessOf(DATA_LOADER, i);
  SplitLeaseClient::Options lease;
  lease.envelope = envelope_;
  lease.loader_index = i;
  lease.num_splits = streams_[i]->num_train_splits();
  lease.timeouts = SimTimeouts();
  leases_[i] = std::make_unique<SplitLeaseClient>(
      lease, process, Connect(surroundings_.addresses->coordinator, process));
  streams_[i]->MakeSources(process, leases_[i].get());
  LoaderEngine::Options options;
  options.loader_index = i;
  options.envelope = envelope_;
  options.timeouts = SimTimeouts();
  options.max_open_parts = 1 + loop_->random()->Below(4);
  options.kill_points = seats_.at({DATA_LOADER, i}).kill_points.get();
  loaders_[i] = std::make_unique<LoaderEngine>(options, planting_.SourcesOf(streams_[i]->sources()),
                                               ChannelsToWorkers(process), process,
                                               FailureSinkOf(DATA_LOADER, i));
  loaders_[i]->Start();
}

void Life::MakeRank(int i) {
  SimProcess* process = ProcessOf(NN_WORKER, i);
  const Seat& seat = seats_.at({NN_WORKER, i});
  if (i == 0 && !MakeCutEngine()) return;
  RankOptions options =
      MakeRankOptions(job_, i, envelope_, planting_.PositionOf(NN_WORKER, seat.begin.position()));
  options.timeouts = SimTimeouts();
  options.has_valid = shape_.has_valid;
  options.has_test = true;
  planting_.ChangeOptions(&options);
  ranks_[i] = std::make_unique<RankEngine>(
      options, process, planting_.ChannelsOf(i, ChannelsToWorkers(process)),
      planting_.TrainerOf(i, training_->trainer(i)), planting_.ObserverOf(&observers_[i]),
      FailureSinkOf(NN_WORKER, i),
      [this, i, process](const RunResult& result) {
        if (!process->alive()) return;
        results_.push_back(planting_.ResultOf(result));
        if (i == 0) MemberOf(NN_WORKER, 0)->Finish(result);
      },
      seat.kill_points.get());
  ranks_[i]->Start();
  if (i == shape_.stop_rank) WishForStop(from_.steps);
}

// Returns whether rank 0 can begin.
bool Life::MakeCutEngine() {
  const Seat& seat = seats_.at({NN_WORKER, 0});
  if (!cut_.empty()) {
    const auto dense = ReadDense(seat.begin.cut(), seat.disk.get());
    if (!dense.ok()) {
      FailureSinkOf(NN_WORKER, 0)(dense.status());
      return false;
    }
    if (*dense != DenseOf(from_.steps)) {
      surroundings_.violated(absl::StrCat(cut_, " of step ", from_.steps, " has ", *dense));
    }
  }
  CutEngine::Options options;
  options.job = job_;
  options.envelope = envelope_;
  options.order_fingerprint = seat.member->last_answer().order_fingerprint();
  options.ledger = planting_.LedgerOf(NN_WORKER, seat.begin.ledger());
  options.timeouts = SimTimeouts();
  options.executor = seat.process;
  options.disk_executor = seat.process;
  options.file_system = seat.disk.get();
  options.kill_points = seat.kill_points.get();
  for (int ps = 0; ps < shape_.ps; ++ps) {
    options.embedding_ps.push_back(Connect(surroundings_.addresses->ps[ps], seat.process));
  }
  options.coordinator = Connect(surroundings_.addresses->coordinator, seat.process);
  auto cuts = CutEngine::Create(options);
  CHECK_OK(cuts.status());
  cuts_ = *std::move(cuts);
  return true;
}

// What the training needs.

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
  if (!ProcessOf(NN_WORKER, 0)->alive()) return;
  SimTraining::State state = training_->state();
  state.validations = observers_[0].validations;
  surroundings_.history->OnMark(CutName(generation_, plan.number), std::move(state));
  cuts_->Begin(std::move(plan), std::move(released), DenseOf(training_->counted_steps()),
               std::move(marked), std::move(ended));
}

void Life::Restore(const std::string& cut, std::function<void(absl::Status)> done) {
  if (!surroundings_.history->IsMarked(cut)) {
    return surroundings_.violated(absl::StrCat("'", cut, "' is loaded, which was never marked"));
  }
  training_->tables()->SetRestored(surroundings_.history->StateOf(cut).tables);
  cuts_->embedding_ps()->LoadTables(absl::StrCat(CheckpointsDir(job_.run_dir()), "/", cut),
                                    std::move(done));
}

// The parts that an embedding worker has accepted and not handed out are bounded.
void Life::CheckQueueCapacity() {
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
  ProcessOf(NN_WORKER, shape_.stop_rank)
      ->PostAfter(static_cast<int64_t>(loop_->random()->Below(kStopDelayMaxUs)), [this] {
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
  return ReadRowOf(pss_[ps].get(), envelope_, rows_read_++, table, key, loop_);
}

}  // namespace satrap::simulation
