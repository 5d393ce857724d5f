#include "tests/simulation/sim_world.h"

#include <sys/stat.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/checkpoint/file_system.h"
#include "common/checkpoint/manifest.h"
#include "common/config/job_config.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_lease_client.h"
#include "data_loader/loader_streams.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "deploy/coordinator/generation_claim.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/rank/rank_engine.h"
#include "tests/simulation/sim_checks.h"
#include "tests/simulation/sim_files.h"
#include "tests/simulation/sim_plants.h"
#include "tests/simulation/sim_trainer.h"
#include "tests/simulation/sim_watch.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kTimeLimitUs = int64_t{600} * 1000 * 1000;
constexpr int64_t kMaxEvents = 4000000;
constexpr int64_t kStopDelayMaxUs = 5000;
constexpr uint64_t kRunId = 0x5a7a95a7a95a7a95;

// Short, so that a simulated minute holds many retries. Silence never ends a call: what the network
// loses must come through in the end.
rpc::RpcTimeouts SimTimeouts() {
  rpc::RpcTimeouts timeouts;
  timeouts.attempt_timeout_ms = 60;
  timeouts.hold_ms = 30;
  timeouts.silence_timeout_ms = kTimeLimitUs;
  return timeouts;
}

JobConfig MakeJobWithFiles(const WorldShape& shape, const SimFolder& folder) {
  JobConfig job = MakeJob(shape);
  WriteFiles(shape, folder, &job);
  return job;
}

class World {
 public:
  World(const WorldShape& shape, Plant plant, const NetworkFaults& faults)
      : shape_(shape),
        job_(MakeJobWithFiles(shape, folder_)),
        loop_(shape.seed),
        network_(&loop_, faults),
        planting_(plant, shape, &loop_),
        training_(shape, &loop_, TrainingSurroundings()),
        observers_(shape.ranks) {
    envelope_.set_job_fingerprint(JobFingerprint(job_));
    envelope_.set_generation(1);
    envelope_.set_run_id(kRunId);
    MakeCoordinator();
    MakePss();
    MakeWorkers();
    MakeLoaders();
    MakeRanks();
  }

  // Queued tasks hold callbacks into the engines, so they go first.
  ~World() { loop_.DropTasks(); }

  WorldResult Run() {
    for (const auto& loader : loaders_) loader->Start();
    for (const auto& rank : ranks_) rank->Start();
    WishForStop(0);
    const auto ended = [this] {
      return !result_.violations.empty() || results_.size() == ranks_.size();
    };
    if (!loop_.RunUntil(ended, kTimeLimitUs, kMaxEvents)) {
      Violate(
          absl::StrCat("stuck: ", results_.size(), " of ", ranks_.size(), " ranks have finished"));
    }
    result_.events = loop_.events();
    result_.simulated_us = loop_.NowUs();
    result_.steps = training_.counted_steps();
    if (result_.violations.empty()) CheckEnd();
    return result_;
  }

 private:
  void Violate(std::string what) {
    if (result_.violations.size() < 20) result_.violations.push_back(std::move(what));
  }
  std::function<void(absl::Status)> FailureSinkOf(std::string role) {
    return [this, role = std::move(role)](absl::Status status) {
      Violate(absl::StrCat(role, " failed: ", status.ToString()));
    };
  }
  rpc::Channel* Connect(rpc::Handler* handler) {
    channels_.push_back(network_.Connect(handler));
    return channels_.back().get();
  }

  SimTraining::Surroundings TrainingSurroundings() {
    SimTraining::Surroundings surroundings;
    surroundings.violated = [this](std::string what) { Violate(std::move(what)); };
    surroundings.counted = [this](uint64_t steps) {
      CheckQueueCapacity();
      WishForStop(steps);
    };
    surroundings.save = [this](const std::string& cut, std::function<void()> done) {
      SaveTables(cut, std::move(done));
    };
    surroundings.restore = [this](const std::string& cut, const std::function<void()>& done) {
      LoadTables(cut, done);
    };
    return surroundings;
  }

  // The parts that an embedding worker has accepted and not handed out are bounded.
  void CheckQueueCapacity() {
    const uint64_t queues = 2 + (shape_.ordered ? shape_.lanes * shape_.ranks : 1);
    for (const auto& worker : workers_) {
      const uint64_t parts = worker->progress().accepted_parts;
      if (parts > queues * shape_.queue_capacity_parts) {
        Violate(absl::StrCat("an embedding worker holds ", parts, " parts in ", queues,
                             " queues of ", shape_.queue_capacity_parts));
      }
    }
  }

  void WishForStop(uint64_t steps) {
    if (shape_.stop_rank < 0 || steps != static_cast<uint64_t>(shape_.stop_after_steps)) return;
    loop_.PostAfter(static_cast<int64_t>(loop_.random()->Below(kStopDelayMaxUs)), [this] {
      stop_wished_at_ = training_.counted_steps();
      ranks_[shape_.stop_rank]->RequestStop();
    });
  }

  std::string FolderOf(const std::string& cut) const {
    return absl::StrCat(folder_.path(), "/", cut);
  }

  // Stands for rank 0's CutEngine (nn_worker/checkpoint/cut_engine.h), without the dense network.
  void SaveTables(const std::string& cut, std::function<void()> done) {
    const std::string folder = FolderOf(cut);
    CHECK(mkdir(folder.c_str(), 0700) == 0) << folder;
    SaveTablesRequest request;
    *request.mutable_envelope() = envelope_;
    request.set_directory(folder);
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
        [manifest, folder, done = std::move(done)] {
          CHECK_OK(WriteManifest(folder, *manifest));
          done();
        });
  }
  void LoadTables(const std::string& cut, const std::function<void()>& done) {
    LoadTablesRequest request;
    *request.mutable_envelope() = envelope_;
    request.set_directory(FolderOf(cut));
    CallPss(
        rpc::kLoadTables, rpc::MessageOf(request), [](const rpc::Message&) {}, done);
  }
  // Calls every PS, not through the network: rank 0's calls for saving and loading are not
  // repeated. `done` runs when all have answered.
  void CallPss(const rpc::Method& method, const rpc::Message& request,
               const std::function<void(const rpc::Message&)>& answered,
               const std::function<void()>& done) {
    auto left = std::make_shared<int>(shape_.ps);
    for (rpc::Handler* ps : ps_handlers_) {
      ps->Handle(method, request,
                 [this, left, answered, done](const absl::StatusOr<rpc::Message>& answer) {
                   if (!answer.ok()) return Violate(answer.status().ToString());
                   answered(*answer);
                   if (--*left == 0) done();
                 });
    }
  }

  void MakeCoordinator() {
    CoordinatorTimeouts timeouts;
    timeouts.heartbeat_timeout_ms = kTimeLimitUs;
    timeouts.start_timeout_ms = kTimeLimitUs;
    timeouts.log_period_ms = kTimeLimitUs;
    ClaimRequest claim;
    claim.job = job_;
    claim.job.set_run_dir(folder_.path());
    claim.run_id = kRunId;
    auto claimed = ClaimGeneration(claim, DiskFileSystem());
    CHECK_OK(claimed.status());
    CoordinatorOptions options;
    options.executor = &loop_;
    options.disk_executor = &loop_;
    options.file_system = DiskFileSystem();
    options.unix_ms = [] { return 0; };
    options.timeouts = timeouts;
    coordinator_ = std::make_unique<CoordinatorEngine>(*std::move(claimed), options);
    Register(DATA_LOADER, shape_.loaders);
    Register(EMBEDDING_WORKER, shape_.workers);
    Register(EMBEDDING_PS, shape_.ps);
    Register(NN_WORKER, shape_.ranks);
  }
  void Register(Role role, int replicas) {
    for (int i = 0; i < replicas; ++i) {
      RegisterRequest request;
      request.mutable_member()->set_role(role);
      request.mutable_member()->set_index(i);
      request.mutable_member()->set_address("simulated");
      request.mutable_member()->set_pid(1 + static_cast<int>(role) * 100 + i);
      request.set_incarnation(1 + static_cast<int>(role) * 100 + i);
      coordinator_->Handle({"/satrap.Coordinator/Register", false},
                           {request.SerializeAsString(), Buffer()},
                           [this](absl::StatusOr<rpc::Message> answer) {
                             if (!answer.ok()) Violate(answer.status().ToString());
                           });
    }
  }

  void MakePss() {
    for (int i = 0; i < shape_.ps; ++i) {
      PsEngine::Options options;
      options.envelope = envelope_;
      options.index = i;
      options.executor = &loop_;
      options.disk_executor = &loop_;
      options.timeouts = SimTimeouts();
      auto engine = PsEngine::Create(planting_.JobOf(EMBEDDING_PS, job_), options);
      CHECK_OK(engine.status());
      pss_.push_back(*std::move(engine));
      rpc::Handler* handler = planting_.BeforePs(i, pss_.back().get());
      // Outermost, so that it sees what workers are told, not what a planted fault does.
      if (!shape_.ordered) {
        handler =
            Keep(std::make_unique<UpdateWatch>(handler, [this, i](uint32_t rank, uint64_t number) {
              training_.OnUpdateApplied(i, rank, number);
            }));
      }
      ps_handlers_.push_back(handler);
    }
  }

  void MakeWorkers() {
    for (int i = 0; i < shape_.workers; ++i) {
      EmbeddingWorkerEngine::Options options;
      options.envelope = envelope_;
      options.index = i;
      for (rpc::Handler* ps : ps_handlers_) options.ps.push_back(Connect(ps));
      options.executor = &loop_;
      options.timeouts = SimTimeouts();
      options.on_failure = FailureSinkOf(absl::StrCat("embedding worker ", i));
      if (planting_.plant() == Plant::kCapacityPerWorker) {
        options.ordered_capacity = StreamQueue::CapacityScope::kStream;
      }
      auto engine = EmbeddingWorkerEngine::Create(planting_.JobOf(EMBEDDING_WORKER, job_), options);
      CHECK_OK(engine.status());
      workers_.push_back(*std::move(engine));
      worker_handlers_.push_back(Keep(std::make_unique<PutBatchWatch>(
          planting_.BeforeWorker(workers_.back().get()), &last_epochs_)));
    }
  }
  rpc::Handler* Keep(std::unique_ptr<rpc::Handler> handler) {
    handlers_.push_back(std::move(handler));
    return handlers_.back().get();
  }

  std::vector<rpc::Channel*> ChannelsToWorkers() {
    std::vector<rpc::Channel*> channels;
    for (rpc::Handler* worker : worker_handlers_) channels.push_back(Connect(worker));
    return channels;
  }

  // The coordinator, too, is reached through the lossy network; the loaders' files are real.
  void MakeLoaders() {
    for (int i = 0; i < shape_.loaders; ++i) {
      auto streams =
          LoaderStreams::Make(planting_.JobOf(DATA_LOADER, job_), i, [](const std::string&) {});
      CHECK_OK(streams.status());
      SplitLeaseClient::Options lease;
      lease.envelope = envelope_;
      lease.loader_index = i;
      lease.num_splits = (*streams)->num_train_splits();
      lease.timeouts = SimTimeouts();
      rpc::Channel* coordinator = Connect(planting_.BeforeCoordinator(coordinator_.get()));
      leases_.push_back(std::make_unique<SplitLeaseClient>(lease, &loop_, coordinator));
      (*streams)->MakeSources(&loop_, leases_.back().get());
      LoaderEngine::Options options;
      options.loader_index = i;
      options.envelope = envelope_;
      options.timeouts = SimTimeouts();
      options.max_open_parts = 1 + loop_.random()->Below(4);
      loaders_.push_back(std::make_unique<LoaderEngine>(
          options, planting_.SourcesOf((*streams)->sources()), ChannelsToWorkers(), &loop_,
          FailureSinkOf(absl::StrCat("loader ", i))));
      streams_.push_back(*std::move(streams));
    }
  }

  void MakeRanks() {
    for (int i = 0; i < shape_.ranks; ++i) {
      RankOptions options = MakeRankOptions(job_, i, envelope_);
      options.timeouts = SimTimeouts();
      options.has_valid = shape_.has_valid;
      options.has_test = true;
      options.keeps_ledger = false;
      options.checkpoint.set_every_steps(static_cast<int64_t>(shape_.seed % 4));
      planting_.ChangeOptions(&options);
      ranks_.push_back(std::make_unique<RankEngine>(
          options, &loop_, planting_.ChannelsOf(i, ChannelsToWorkers()),
          planting_.TrainerOf(i, training_.trainer(i)), planting_.ObserverOf(&observers_[i]),
          FailureSinkOf(absl::StrCat("rank ", i)),
          [this](const RunResult& result) { results_.push_back(planting_.ResultOf(result)); }));
    }
  }

  void CheckEnd() {
    FinishedWorld finished;
    finished.shape = &shape_;
    finished.training = &training_;
    finished.results = &results_;
    finished.observers = &observers_;
    finished.stop_wished_at = stop_wished_at_;
    finished.last_epochs = last_epochs_;
    for (const auto& worker : workers_) finished.workers.push_back(worker.get());
    for (const auto& ps : pss_) finished.pss.push_back(ps.get());
    finished.read_row = [this](int ps, uint32_t table, uint64_t key) {
      return ReadRow(ps, table, key);
    };
    finished.violated = [this](std::string what) { Violate(std::move(what)); };
    CheckFinishedWorld(finished);
    result_.validations = observers_[0].validations.size();
    result_.non_finite_steps = training_.non_finite_steps();
    result_.stopped_early = results_[0].stopped_early();
    result_.stopped_by_wish = training_.stop_step().has_value();
    result_.restored = training_.restored();
    for (const auto& [pass, seen] : training_.seen()) {
      if (pass.first != TRAIN_STREAM) continue;
      for (const auto& [id, times] : seen) result_.trained_samples += times;
    }
  }

  // The row of a key at an embedding PS, read by a Lookup of evaluation; none: there is no row.
  absl::optional<std::vector<float>> ReadRow(int ps, uint32_t table, uint64_t key) {
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
                       const auto bits = rpc::SectionView<uint8_t>(
                           answer->payload, values.presence(), 1, "presence");
                       CHECK_OK(floats.status());
                       CHECK_OK(bits.status());
                       if (((*bits)[0] & 1) != 0) row.emplace(floats->begin(), floats->end());
                       done = true;
                     });
    CHECK(loop_.RunUntil([&] { return done; }, loop_.NowUs() + 1000000, loop_.events() + 100000));
    return row;
  }

  const WorldShape shape_;
  const SimFolder folder_;
  const JobConfig job_;
  SimLoop loop_;
  SimNetwork network_;
  Planting planting_;
  SimTraining training_;
  std::vector<RecordingObserver> observers_;
  Envelope envelope_;
  WorldResult result_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::unique_ptr<CoordinatorEngine> coordinator_;
  std::vector<std::unique_ptr<PsEngine>> pss_;
  uint64_t rows_read_ = 0;                               // by ReadRow
  std::vector<std::unique_ptr<rpc::Handler>> handlers_;  // before engines
  std::vector<rpc::Handler*> ps_handlers_;
  std::vector<rpc::Handler*> worker_handlers_;
  std::map<Stream, uint32_t> last_epochs_;  // of PutBatches
  std::vector<std::unique_ptr<EmbeddingWorkerEngine>> workers_;
  std::vector<std::unique_ptr<SplitSupply>> leases_;
  std::vector<std::unique_ptr<LoaderStreams>> streams_;
  std::vector<std::unique_ptr<LoaderEngine>> loaders_;
  std::vector<std::unique_ptr<RankEngine>> ranks_;
  std::vector<RunResult> results_;
  absl::optional<uint64_t> stop_wished_at_;
};

}  // namespace

WorldResult RunWorld(const WorldShape& shape, Plant plant, const NetworkFaults& faults) {
  World world(shape, plant, faults);
  return world.Run();
}

std::vector<std::string> KindsOf(const WorldShape& shape, const WorldResult& result) {
  std::vector<std::string> kinds = {
      shape.ordered ? "sync" : "hybrid",
      absl::StrCat("with ", shape.ranks, " NN workers"),
      absl::StrCat("with ", shape.loaders, " loaders"),
      absl::StrCat("with ", shape.workers, " embedding workers"),
      absl::StrCat("with ", shape.ps, " PSs"),
  };
  if (!shape.ordered) kinds.push_back(absl::StrCat("with staleness ", shape.max_staleness));
  if (shape.ordered) kinds.push_back(absl::StrCat("with ", shape.lanes, " lanes"));
  if (shape.epochs > 1) kinds.push_back("of several epochs");
  if (shape.shuffle_rows > 0) kinds.push_back("shuffled");
  for (const auto optimizer : shape.optimizers) {
    if (optimizer != SparseOptimizerConfig::kSgd) {
      kinds.push_back("with optimizers that have state");
      break;
    }
  }
  if (shape.l2 > 0) kinds.push_back("with L2");
  if (shape.gradient_clip_norm > 0) kinds.push_back("with gradient clipping");
  if (result.validations > 1) kinds.push_back("validated more than once");
  if (result.non_finite_steps > 0) kinds.push_back("with steps that were not finite");
  if (shape.max_steps > 0) kinds.push_back("with max_steps");
  if (result.stopped_early) kinds.push_back("stopped early, out of patience");
  if (result.stopped_by_wish) kinds.push_back("stopped by RequestStop");
  if (result.restored) kinds.push_back("tested with an earlier, best model");
  return kinds;
}

std::string ReplayCommand(uint64_t seed) {
  return absl::StrCat("bazel run //tests/simulation:simulate -- ", seed);
}

namespace {

const char* NameOf(SparseOptimizerConfig::KindCase optimizer) {
  switch (optimizer) {
    case SparseOptimizerConfig::kSgd:
      return "SGD";
    case SparseOptimizerConfig::kAdagrad:
      return "Adagrad";
    case SparseOptimizerConfig::kRowwiseAdagrad:
      return "row-wise Adagrad";
    case SparseOptimizerConfig::kAdam:
      return "Adam";
    case SparseOptimizerConfig::KIND_NOT_SET:
      break;
  }
  return "none";
}

}  // namespace

std::string Describe(const WorldShape& shape) {
  std::string splits;
  for (const auto& rows : shape.split_rows)
    absl::StrAppend(&splits, " [", absl::StrJoin(rows, " "), "]");
  return absl::StrCat(
      "seed ", shape.seed, shape.ordered ? " sync" : " hybrid", ": ", shape.loaders, " loaders, ",
      shape.workers, " embedding workers, ", shape.ps, " PSs, ", shape.ranks, " ranks, ",
      shape.lanes, " lanes, staleness ", shape.max_staleness, " after ",
      shape.staleness_warmup_steps, " steps, ", shape.epochs, " epochs, batch ",
      shape.global_batch_size, ", queue capacity ", shape.queue_capacity_parts,
      ", evaluation every ", shape.evaluate_every_steps, " steps",
      shape.evaluate_at_epoch_end ? " and epoch ends" : "",
      shape.has_valid ? "" : " without a validation set", ", patience ", shape.patience, ", ",
      shape.has_non_finite_steps ? "not all finite, " : "", "max_steps ", shape.max_steps,
      shape.stop_rank < 0 ? ""
                          : absl::StrCat(", rank ", shape.stop_rank, " stops after ",
                                         shape.stop_after_steps, " steps"),
      ", shuffle_rows ", shape.shuffle_rows, ", ", shape.parse_threads, " parsing, optimizers ",
      NameOf(shape.optimizers[0]), " and ", NameOf(shape.optimizers[1]), ", l2 ", shape.l2,
      ", clip ", shape.gradient_clip_norm, ", bound ", shape.weight_bound, ", splits", splits);
}

}  // namespace satrap::simulation
