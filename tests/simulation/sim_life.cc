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
      planting_(surroundings.plant, start.shape, surroundings.loop),
      observers_(start.shape.ranks) {
  for (RecordingObserver& observer : observers_) observer.validations = start.state.validations;
  for (int i = 0; i < shape_.ranks; ++i) rank_processes_.push_back(NewProcess("rank", i));
  training_ = std::make_unique<SimTraining>(shape_, loop_, rank_processes_, TrainingSurroundings(),
                                            start.state);
  MakeCoordinator();
  MakePss();
  MakeWorkers();
  MakeLoaders();
  MakeRanks();
}

Life::~Life() = default;

void Life::Begin() {
  for (const auto& loader : loaders_) loader->Start();
  for (const auto& rank : ranks_) rank->Start();
  WishForStop(0);
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

rpc::Channel* Life::Connect(SimNetwork::Address to, const SimProcess* from) {
  channels_.push_back(surroundings_.network->Connect(to, from));
  return channels_.back().get();
}

std::vector<rpc::Channel*> Life::ChannelsToWorkers(const SimProcess* from) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < shape_.workers; ++i) {
    channels.push_back(Connect(surroundings_.addresses->workers[i], from));
  }
  return channels;
}

std::function<void(absl::Status)> Life::FailureSinkOf(SimProcess* process) {
  return [this, process](const absl::Status& status) {
    if (!process->alive()) return;
    if (!doomed_) {
      surroundings_.violated(absl::StrCat(process->name(), " failed: ", status.ToString()));
    }
    process->Kill();
  };
}

// The engines.

void Life::MakeCoordinator() {
  CoordinatorTimeouts timeouts;
  timeouts.heartbeat_timeout_ms = kTimeLimitUs;
  timeouts.start_timeout_ms = kTimeLimitUs;
  SimProcess* process = NewProcess("coordinator", 0);
  coordinator_ = std::make_unique<CoordinatorEngine>(job_, run_id_, process, timeouts);
  surroundings_.network->Listen(surroundings_.addresses->coordinator, process,
                                planting_.BeforeCoordinator(coordinator_.get()));
  Register(DATA_LOADER, shape_.loaders);
  Register(EMBEDDING_WORKER, shape_.workers);
  Register(EMBEDDING_PS, shape_.ps);
  Register(NN_WORKER, shape_.ranks);
  planting_.SetEnvelope(envelope_);
}

// All calls of the life carry the envelope that the coordinator gives.
void Life::Register(Role role, int replicas) {
  for (int i = 0; i < replicas; ++i) {
    RegisterRequest request;
    request.mutable_member()->set_role(role);
    request.mutable_member()->set_index(i);
    request.mutable_member()->set_address("simulated");
    request.mutable_member()->set_pid(number_ * 1000 + static_cast<int>(role) * 100 + i);
    request.set_job_fingerprint(JobFingerprint(job_));
    request.set_incarnation(number_ * 1000 + static_cast<int>(role) * 100 + i);
    coordinator_->Handle({"/satrap.Coordinator/Register", false},
                         {request.SerializeAsString(), Buffer()},
                         [this](absl::StatusOr<rpc::Message> answer) {
                           CHECK_OK(answer.status());
                           RegisterAnswer registered;
                           CHECK(registered.ParseFromString(answer->header));
                           envelope_ = registered.envelope();
                         });
  }
}

void Life::MakePss() {
  for (int i = 0; i < shape_.ps; ++i) {
    SimProcess* process = NewProcess("embedding PS", i);
    PsEngine::Options options;
    options.envelope = envelope_;
    options.index = i;
    options.executor = process;
    options.disk_executor = process;
    options.timeouts = SimTimeouts();
    auto engine = PsEngine::Create(planting_.JobOf(EMBEDDING_PS, job_), options);
    CHECK_OK(engine.status());
    pss_.push_back(*std::move(engine));
    rpc::Handler* handler = planting_.BeforePs(i, pss_.back().get());
    // Outermost, so that it sees what workers are told, not what a planted fault does.
    if (!shape_.ordered) {
      handler =
          Keep(std::make_unique<UpdateWatch>(handler, [this, i](uint32_t rank, uint64_t number) {
            training_->OnUpdateApplied(i, rank, number);
          }));
    }
    ps_processes_.push_back(process);
    ps_handlers_.push_back(handler);
    surroundings_.network->Listen(surroundings_.addresses->ps[i], process, handler);
  }
}

void Life::MakeWorkers() {
  for (int i = 0; i < shape_.workers; ++i) {
    SimProcess* process = NewProcess("embedding worker", i);
    EmbeddingWorkerEngine::Options options;
    options.envelope = envelope_;
    options.index = i;
    for (int ps = 0; ps < shape_.ps; ++ps) {
      options.ps.push_back(Connect(surroundings_.addresses->ps[ps], process));
    }
    options.executor = process;
    options.timeouts = SimTimeouts();
    options.on_failure = FailureSinkOf(process);
    if (planting_.plant() == Plant::kCapacityPerWorker) {
      options.ordered_capacity = StreamQueue::CapacityScope::kStream;
    }
    auto engine = EmbeddingWorkerEngine::Create(planting_.JobOf(EMBEDDING_WORKER, job_), options);
    CHECK_OK(engine.status());
    workers_.push_back(*std::move(engine));
    rpc::Handler* handler = Keep(std::make_unique<PutBatchWatch>(
        planting_.BeforeWorker(workers_.back().get()), envelope_, &last_epochs_));
    surroundings_.network->Listen(surroundings_.addresses->workers[i], process, handler);
  }
}

// The coordinator, too, is reached through the lossy network; the loaders' files are real.
void Life::MakeLoaders() {
  for (int i = 0; i < shape_.loaders; ++i) {
    SimProcess* process = NewProcess("loader", i);
    auto streams =
        LoaderStreams::Make(planting_.JobOf(DATA_LOADER, job_), i, [](const std::string&) {});
    CHECK_OK(streams.status());
    SplitLeaseClient::Options lease;
    lease.envelope = envelope_;
    lease.loader_index = i;
    lease.num_splits = (*streams)->num_train_splits();
    lease.timeouts = SimTimeouts();
    rpc::Channel* coordinator = Connect(surroundings_.addresses->coordinator, process);
    leases_.push_back(std::make_unique<SplitLeaseClient>(lease, process, coordinator));
    (*streams)->MakeSources(process, leases_.back().get());
    LoaderEngine::Options options;
    options.loader_index = i;
    options.envelope = envelope_;
    options.timeouts = SimTimeouts();
    options.max_open_parts = 1 + loop_->random()->Below(4);
    loaders_.push_back(std::make_unique<LoaderEngine>(
        options, planting_.SourcesOf((*streams)->sources()), ChannelsToWorkers(process), process,
        FailureSinkOf(process)));
    streams_.push_back(*std::move(streams));
  }
}

void Life::MakeRanks() {
  for (int i = 0; i < shape_.ranks; ++i) {
    SimProcess* process = rank_processes_[i];
    RankOptions options = MakeRankOptions(job_, i, envelope_);
    options.timeouts = SimTimeouts();
    options.has_valid = shape_.has_valid;
    options.has_test = true;
    planting_.ChangeOptions(&options);
    ranks_.push_back(std::make_unique<RankEngine>(
        options, process, planting_.ChannelsOf(i, ChannelsToWorkers(process)),
        planting_.TrainerOf(i, training_->trainer(i)), planting_.ObserverOf(&observers_[i]),
        FailureSinkOf(process), [this, process](const RunResult& result) {
          if (process->alive()) results_.push_back(planting_.ResultOf(result));
        }));
  }
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
    const uint64_t parts = worker->progress().accepted_parts;
    if (parts > queues * shape_.queue_capacity_parts) {
      surroundings_.violated(absl::StrCat("an embedding worker holds ", parts, " parts in ", queues,
                                          " queues of ", shape_.queue_capacity_parts));
    }
  }
}

void Life::WishForStop(uint64_t steps) {
  if (shape_.stop_rank < 0 || steps != static_cast<uint64_t>(shape_.stop_after_steps)) return;
  rank_processes_[shape_.stop_rank]->PostAfter(
      static_cast<int64_t>(loop_->random()->Below(kStopDelayMaxUs)), [this] {
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
    SimProcess* process = ps_processes_[ps];
    // A call to a dead PS stays without an answer until somebody ends the life.
    if (!process->alive()) continue;
    ps_handlers_[ps]->Handle(
        method, request,
        [this, process, left, answered, done](const absl::StatusOr<rpc::Message>& answer) {
          if (!process->alive() || !rank_processes_[0]->alive()) return;
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
