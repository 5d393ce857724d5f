#include "tests/simulation/sim_life.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/checkpoint/manifest.h"
#include "common/config/job_config.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "data_loader/engine/split_lease_client.h"
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

}  // namespace

SimAddresses::SimAddresses(SimNetwork* network) : coordinator(network->NewAddress()) {
  for (int i = 0; i < kMaxWorkers; ++i) workers.push_back(network->NewAddress());
  for (int i = 0; i < kMaxPss; ++i) ps.push_back(network->NewAddress());
}

Life::Life(const Surroundings& surroundings, const Start& start)
    : surroundings_(surroundings),
      loop_(surroundings.loop),
      number_(start.number),
      shape_(start.shape),
      job_(start.job),
      run_id_(start.run_id),
      steps_before_(start.state.steps),
      validations_before_(start.state.validations.size()),
      members_address_(surroundings.network->NewAddress()),
      planting_(surroundings.plant, start.shape, surroundings.loop),
      observers_(start.shape.ranks),
      pss_(start.shape.ps),
      ps_handlers_(start.shape.ps),
      workers_(start.shape.workers),
      leases_(start.shape.loaders),
      streams_(start.shape.loaders),
      loaders_(start.shape.loaders),
      ranks_(start.shape.ranks) {
  for (RecordingObserver& observer : observers_) observer.validations = start.state.validations;
  coordinator_process_ = NewProcess("coordinator", 0);
  for (int i = 0; i < shape_.ps; ++i) {
    NewSeat(
        EMBEDDING_PS, i, [this, i] { MakePs(i); }, [] {});
  }
  for (int i = 0; i < shape_.workers; ++i) {
    NewSeat(
        EMBEDDING_WORKER, i, [] {}, [this, i] { MakeWorker(i); });
  }
  for (int i = 0; i < shape_.loaders; ++i) {
    NewSeat(
        DATA_LOADER, i, [this, i] { ListFiles(i); }, [this, i] { MakeLoader(i); });
  }
  for (int i = 0; i < shape_.ranks; ++i) {
    NewSeat(
        NN_WORKER, i, [] {}, [this, i] { MakeRank(i); });
  }
  std::vector<SimProcess*> ranks;
  for (int i = 0; i < shape_.ranks; ++i) ranks.push_back(ProcessOf(NN_WORKER, i));
  training_ = std::make_unique<SimTraining>(shape_, loop_, std::move(ranks), TrainingSurroundings(),
                                            start.state);
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
  options.registration.set_job_fingerprint(JobFingerprint(job_));
  options.process = seat.process;
  options.coordinator = Connect(members_address_, seat.process);
  options.starting_period_ms = kStartingHeartbeatMs;
  SimMember::Events events;
  events.registered = [this, &seat, load = std::move(load)](const RegisterAnswer& answer) {
    envelope_ = answer.envelope();
    planting_.SetEnvelope(envelope_);
    load();
    seat.member->Ready();
  };
  events.joined = std::move(begin);
  events.exited = [this, &seat](Exit exit, const std::string& why) {
    if (doomed_ || exit == Exit::kDone) return;
    surroundings_.violated(
        absl::StrCat(seat.process->name(), " exits with ", static_cast<int>(exit), ": ", why));
  };
  seat.member = std::make_unique<SimMember>(options, std::move(events));
}

SimProcess* Life::ProcessOf(Role role, int index) const { return seats_.at({role, index}).process; }

std::function<void(absl::Status)> Life::FailureSinkOf(Role role, int index) {
  Seat& seat = seats_.at({role, index});
  return [this, &seat](const absl::Status& status) {
    if (!seat.process->alive()) return;
    if (!doomed_) {
      surroundings_.violated(absl::StrCat(seat.process->name(), " failed: ", status.ToString()));
    }
    seat.member->Fail(status);
  };
}

// The engines.

void Life::MakeCoordinator() {
  coordinator_ = std::make_unique<CoordinatorEngine>(job_, run_id_, coordinator_process_,
                                                     CoordinatorTimeouts());
  rpc::Handler* handler = planting_.BeforeCoordinator(coordinator_.get());
  surroundings_.network->Listen(surroundings_.addresses->coordinator, coordinator_process_,
                                handler);
  surroundings_.network->Listen(members_address_, coordinator_process_, handler);
}

void Life::MakePs(int i) {
  SimProcess* process = ProcessOf(EMBEDDING_PS, i);
  PsEngine::Options options;
  options.envelope = envelope_;
  options.index = i;
  options.executor = process;
  options.disk_executor = process;
  options.timeouts = SimTimeouts();
  auto engine = PsEngine::Create(planting_.JobOf(EMBEDDING_PS, job_), options);
  CHECK_OK(engine.status());
  pss_[i] = *std::move(engine);
  rpc::Handler* handler = planting_.BeforePs(i, pss_[i].get());
  // Outermost, so that it sees what workers are told, not what a planted fault does.
  if (!shape_.ordered) {
    handler =
        Keep(std::make_unique<UpdateWatch>(handler, [this, i](uint32_t rank, uint64_t number) {
          training_->OnUpdateApplied(i, rank, number);
        }));
  }
  ps_handlers_[i] = handler;
  surroundings_.network->Listen(surroundings_.addresses->ps[i], process, handler);
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

// The loaders' files are real.
void Life::ListFiles(int i) {
  auto streams =
      LoaderStreams::Make(planting_.JobOf(DATA_LOADER, job_), i, [](const std::string&) {});
  CHECK_OK(streams.status());
  streams_[i] = *std::move(streams);
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
  loaders_[i] = std::make_unique<LoaderEngine>(options, planting_.SourcesOf(streams_[i]->sources()),
                                               ChannelsToWorkers(process), process,
                                               FailureSinkOf(DATA_LOADER, i));
  loaders_[i]->Start();
}

void Life::MakeRank(int i) {
  SimProcess* process = ProcessOf(NN_WORKER, i);
  RankOptions options = MakeRankOptions(job_, i, envelope_);
  options.timeouts = SimTimeouts();
  options.has_valid = shape_.has_valid;
  options.has_test = true;
  planting_.ChangeOptions(&options);
  ranks_[i] = std::make_unique<RankEngine>(
      options, process, planting_.ChannelsOf(i, ChannelsToWorkers(process)),
      planting_.TrainerOf(i, training_->trainer(i)), planting_.ObserverOf(&observers_[i]),
      FailureSinkOf(NN_WORKER, i), [this, i, process](const RunResult& result) {
        if (!process->alive()) return;
        results_.push_back(planting_.ResultOf(result));
        if (i == 0) seats_.at({NN_WORKER, 0}).member->Finish(result);
      });
  ranks_[i]->Start();
  if (i == shape_.stop_rank) WishForStop(0);
}

// What the training needs.

SimTraining::Surroundings Life::TrainingSurroundings() {
  SimTraining::Surroundings surroundings;
  surroundings.violated = surroundings_.violated;
  surroundings.counted = [this](uint64_t steps) {
    CheckQueueCapacity();
    WishForStop(steps);
  };
  surroundings.save = [this](std::function<void()> done) { SaveTables(std::move(done)); };
  surroundings.restore = [this](const std::function<void()>& done) { LoadTables(done); };
  return surroundings;
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

std::string Life::ModelFolder() const {
  return absl::StrCat(surroundings_.folder, "/model-", number_, "-", saves_);
}

// What the model store of rank 0 does (nn_worker/checkpoint/model_store.h), without the dense
// network. Folders are never reused, as in a run, so a load can only see a save that is whole.
void Life::SaveTables(std::function<void()> done) {
  ++saves_;
  CHECK(mkdir(ModelFolder().c_str(), 0700) == 0) << ModelFolder();
  SaveTablesRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_directory(ModelFolder());
  auto manifest = std::make_shared<CheckpointManifest>();
  manifest->set_version(kManifestVersion);
  for (const TableConfig& config : job_.tables()) {
    SavedTable* table = manifest->add_tables();
    table->set_name(config.name());
    table->set_id(config.id());
    table->set_fingerprint(TableFingerprint(config));
  }
  CallPss(
      rpc::kSaveTables, rpc::MessageOf(request),
      [manifest](const rpc::Message& message) {
        SaveTablesAnswer answer;
        CHECK(answer.ParseFromString(message.header));
        for (const SavedFile& file : answer.files()) *manifest->add_table_files() = file;
      },
      [this, manifest, done = std::move(done)] {
        CHECK_OK(WriteManifest(ModelFolder(), *manifest));
        done();
      });
}

void Life::LoadTables(const std::function<void()>& done) {
  LoadTablesRequest request;
  *request.mutable_envelope() = envelope_;
  request.set_directory(ModelFolder());
  CallPss(
      rpc::kLoadTables, rpc::MessageOf(request), [](const rpc::Message&) {}, done);
}

// Calls every PS, not through the network: rank 0's calls for saving and loading are not
// repeated. `done` runs when all have answered.
void Life::CallPss(const rpc::Method& method, const rpc::Message& request,
                   const std::function<void(const rpc::Message&)>& answered,
                   const std::function<void()>& done) {
  auto left = std::make_shared<int>(shape_.ps);
  for (int ps = 0; ps < shape_.ps; ++ps) {
    SimProcess* process = ProcessOf(EMBEDDING_PS, ps);
    // A call to a dead PS stays without an answer until somebody ends the life.
    if (!process->alive()) continue;
    ps_handlers_[ps]->Handle(
        method, request,
        [this, process, left, answered, done](const absl::StatusOr<rpc::Message>& answer) {
          if (!process->alive() || !ProcessOf(NN_WORKER, 0)->alive()) return;
          if (!answer.ok()) return surroundings_.violated(answer.status().ToString());
          answered(*answer);
          if (--*left == 0) done();
        });
  }
}

// The end.

void Life::CheckEnd() {
  FinishedWorld finished;
  finished.shape = &shape_;
  finished.training = training_.get();
  finished.steps_before = steps_before_;
  finished.validations_before = validations_before_;
  finished.results = &results_;
  finished.observers = &observers_;
  finished.stop_wished_at = stop_wished_at_;
  finished.last_epochs = last_epochs_;
  for (const auto& worker : workers_) finished.workers.push_back(worker.get());
  for (const auto& ps : pss_) finished.pss.push_back(ps.get());
  finished.read_row = [this](int ps, uint32_t table, uint64_t key) {
    return ReadRow(ps, table, key);
  };
  finished.violated = surroundings_.violated;
  CheckFinishedWorld(finished);
}

// The row of a key at an embedding PS, read by a Lookup of evaluation; none: there is no row.
absl::optional<std::vector<float>> Life::ReadRow(int ps, uint32_t table, uint64_t key) {
  // Under the name of embedding worker 0, with numbers above those of its own calls.
  constexpr uint64_t kFirstNumber = uint64_t{1} << 40;
  LookupHeader header;
  *header.mutable_envelope() = envelope_;
  header.mutable_call()->set_sender(0);
  header.mutable_call()->set_number(kFirstNumber + rows_read_++);
  header.mutable_call()->set_oldest_open(1);
  header.set_training(false);
  TableKeys* asked = header.add_tables();
  asked->set_table(table);
  asked->set_num_keys(1);
  rpc::PayloadBuilder builder;
  builder.Reserve<uint64_t>(1, asked->mutable_keys());
  builder.Allocate();
  builder.Fill<uint64_t>(asked->keys())[0] = key;
  absl::optional<std::vector<float>> row;
  bool done = false;
  pss_[ps]->Handle(rpc::kLookup, {header.SerializeAsString(), builder.Take()},
                   [&](absl::StatusOr<rpc::Message> answer) {
                     CHECK_OK(answer.status());
                     LookupAnswerHeader got;
                     CHECK(got.ParseFromString(answer->header));
                     const TableValues& values = got.tables(0);
                     const auto floats = rpc::SectionView<float>(answer->payload, values.values(),
                                                                 values.row_values(), "values");
                     const auto bits = rpc::SectionView<uint8_t>(answer->payload, values.presence(),
                                                                 1, "presence");
                     CHECK_OK(floats.status());
                     CHECK_OK(bits.status());
                     if (((*bits)[0] & 1) != 0) row.emplace(floats->begin(), floats->end());
                     done = true;
                   });
  CHECK(loop_->RunUntil([&] { return done; }, loop_->NowUs() + 1000000, loop_->events() + 100000));
  return row;
}

}  // namespace satrap::simulation
