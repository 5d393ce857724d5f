#include "tests/simulation/sim_world.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/config/job_config.h"
#include "common/hash.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_lease.h"
#include "deploy/coordinator/coordinator_engine.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "nn_worker/rank/rank_engine.h"
#include "tests/simulation/sim_oracle.h"
#include "tests/simulation/sim_part_source.h"
#include "tests/simulation/sim_plants.h"
#include "tests/simulation/sim_trainer.h"

namespace satrap::simulation {
namespace {

constexpr int64_t kTimeLimitUs = int64_t{600} * 1000 * 1000;
constexpr int64_t kMaxEvents = 4000000;
constexpr double kTolerance = 1e-3;
constexpr uint64_t kNoLimit = ~uint64_t{0};

// Short, so that a simulated minute holds many retries; a peer is never given up.
rpc::RpcTimeouts SimTimeouts() {
  rpc::RpcTimeouts timeouts;
  timeouts.attempt_timeout_ms = 60;
  timeouts.hold_ms = 30;
  timeouts.silence_timeout_ms = kTimeLimitUs;
  return timeouts;
}

class IgnoringObserver final : public RankObserver {
 public:
  void OnPhase(absl::string_view) override {}
  void OnStep(const StepEvent&) override {}
  void OnEvaluation(const EvaluationEvent&) override {}
};

class World {
 public:
  World(const WorldShape& shape, Plant plant, const NetworkFaults& faults)
      : shape_(shape),
        job_(MakeJob(shape)),
        loop_(shape.seed),
        network_(&loop_, faults),
        training_(shape, &loop_, [this](std::string what) { Violate(std::move(what)); }) {
    envelope_.set_job_fingerprint(JobFingerprint(job_));
    envelope_.set_generation(1);
    MakeCoordinator();
    MakePss(plant);
    MakeWorkers(plant);
    MakeLoaders();
    MakeRanks();
  }

  // Tasks that are still queued hold callbacks into the engines.
  ~World() { loop_.DropTasks(); }

  WorldResult Run() {
    for (const auto& loader : loaders_) loader->Start();
    for (const auto& rank : ranks_) rank->Start();
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

  void MakeCoordinator() {
    CoordinatorTimeouts timeouts;
    timeouts.heartbeat_timeout_ms = kTimeLimitUs;
    timeouts.start_timeout_ms = kTimeLimitUs;
    coordinator_ = std::make_unique<CoordinatorEngine>(job_, &loop_, timeouts);
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
      request.set_job_fingerprint(envelope_.job_fingerprint());
      coordinator_->Handle({"/satrap.Coordinator/Register", false},
                           {request.SerializeAsString(), Buffer()},
                           [this](absl::StatusOr<rpc::Message> answer) {
                             if (!answer.ok()) Violate(answer.status().ToString());
                           });
    }
  }

  void MakePss(Plant plant) {
    for (int i = 0; i < shape_.ps; ++i) {
      PsEngine::Options options;
      options.envelope = envelope_;
      options.index = i;
      options.executor = &loop_;
      options.disk_executor = &loop_;
      options.timeouts = SimTimeouts();
      auto engine = PsEngine::Create(job_, options);
      CHECK_OK(engine.status());
      pss_.push_back(*std::move(engine));
      rpc::Handler* handler = pss_.back().get();
      if (plant == Plant::kForgetfulWindow || plant == Plant::kLookupCreatesRows) {
        plants_.push_back(plant == Plant::kForgetfulWindow
                              ? NewForgetfulWindow(handler)
                              : NewRowCreatingLookup(handler, shape_.ranks));
        handler = plants_.back().get();
      }
      ps_handlers_.push_back(handler);
    }
  }

  void MakeWorkers(Plant plant) {
    for (int i = 0; i < shape_.workers; ++i) {
      EmbeddingWorkerEngine::Options options;
      options.envelope = envelope_;
      for (rpc::Handler* ps : ps_handlers_) options.ps.push_back(Connect(ps));
      options.executor = &loop_;
      options.timeouts = SimTimeouts();
      options.on_failure = FailureSinkOf(absl::StrCat("embedding worker ", i));
      if (plant == Plant::kRoomPerWorker) options.ordered_room = StreamQueue::RoomScope::kStream;
      auto engine = EmbeddingWorkerEngine::Create(job_, options);
      CHECK_OK(engine.status());
      workers_.push_back(*std::move(engine));
    }
  }

  std::vector<rpc::Channel*> ChannelsToWorkers() {
    std::vector<rpc::Channel*> channels;
    for (const auto& worker : workers_) channels.push_back(Connect(worker.get()));
    return channels;
  }

  PartSource* NewSource(Stream stream, int lane, bool ordered, SplitSupply* supply) {
    sources_.push_back(std::make_unique<SimPartSource>(shape_, stream, lane, ordered, supply));
    return sources_.back().get();
  }
  SplitSupply* NewStaticSplits(Stream stream, int first, int step) {
    supplies_.push_back(std::make_unique<StaticSplits>(
        first, step, static_cast<uint32_t>(shape_.split_rows[stream].size())));
    return supplies_.back().get();
  }
  SplitSupply* NewLease(int loader) {
    SplitLease::Options options;
    options.envelope = envelope_;
    options.loader_index = loader;
    options.num_splits = static_cast<uint32_t>(shape_.split_rows[TRAIN_STREAM].size());
    options.timeouts = SimTimeouts();
    supplies_.push_back(std::make_unique<SplitLease>(options, &loop_, Connect(coordinator_.get())));
    return supplies_.back().get();
  }

  void MakeLoaders() {
    for (int i = 0; i < shape_.loaders; ++i) {
      std::vector<LoaderEngine::StreamSources> streams(3);
      streams[0].stream = TRAIN_STREAM;
      streams[0].ordered = shape_.ordered;
      streams[0].epochs = shape_.epochs;
      if (shape_.ordered) {
        for (int lane = i; lane < shape_.lanes; lane += shape_.loaders) {
          streams[0].sources.push_back(NewSource(
              TRAIN_STREAM, lane, true, NewStaticSplits(TRAIN_STREAM, lane, shape_.lanes)));
        }
      } else {
        streams[0].sources.push_back(NewSource(TRAIN_STREAM, i, false, NewLease(i)));
      }
      for (const Stream stream : {VALID_STREAM, TEST_STREAM}) {
        streams[stream].stream = stream;
        streams[stream].sources.push_back(
            NewSource(stream, i, false, NewStaticSplits(stream, i, shape_.loaders)));
      }
      LoaderEngine::Options options;
      options.loader_index = i;
      options.envelope = envelope_;
      options.timeouts = SimTimeouts();
      options.max_open_parts = 1 + loop_.random()->Below(4);
      loaders_.push_back(std::make_unique<LoaderEngine>(options, streams, ChannelsToWorkers(),
                                                        &loop_,
                                                        FailureSinkOf(absl::StrCat("loader ", i))));
    }
  }

  void MakeRanks() {
    for (int i = 0; i < shape_.ranks; ++i) {
      RankOptions options = MakeRankOptions(job_, i, envelope_);
      options.timeouts = SimTimeouts();
      options.has_valid = true;
      options.has_test = true;
      ranks_.push_back(std::make_unique<RankEngine>(
          options, &loop_, ChannelsToWorkers(), training_.trainer(i), &observer_,
          FailureSinkOf(absl::StrCat("rank ", i)),
          [this](const RunResult& result) { results_.push_back(result); }));
    }
  }

  void CheckEnd() {
    CheckSteps();
    CheckSamples();
    CheckRows();
  }

  // Training ends at max_steps, but for the parts that ranks hold by then; steps that are not
  // finite are counted as such.
  void CheckSteps() {
    const uint64_t steps = training_.counted_steps();
    const auto held =
        static_cast<uint64_t>(shape_.ordered ? 0 : shape_.ranks * shape_.max_staleness - 1);
    if (EndedEarly() && steps > shape_.max_steps + held) {
      Violate(absl::StrCat(steps, " steps with max_steps ", shape_.max_steps));
    }
    for (const RunResult& result : results_) {
      if (result.steps() != steps || result.skipped_steps() != training_.non_finite_steps()) {
        Violate(absl::StrCat("a rank tells ", result.steps(), " steps, ", result.skipped_steps(),
                             " not finite, of ", steps, " and ", training_.non_finite_steps()));
      }
    }
  }

  // Every train sample once an epoch, unless max_steps ended training before that; every evaluation
  // sample once a pass.
  void CheckSamples() {
    for (int stream = 0; stream < 3; ++stream) {
      std::set<uint64_t> ids;
      for (size_t split = 0; split < shape_.split_rows[stream].size(); ++split) {
        for (int row = 0; row < shape_.split_rows[stream][split]; ++row) {
          ids.insert(
              MakeSample(shape_, static_cast<Stream>(stream), static_cast<int>(split), row).id);
        }
      }
      if (stream == TRAIN_STREAM) {
        CheckTimes(ids, training_.trained(), EndedEarly() ? 0 : shape_.epochs, shape_.epochs,
                   "trained");
        for (const auto& [id, times] : training_.trained()) result_.trained_samples += times;
        continue;
      }
      for (const auto& [pass, scored] : training_.scored()) {
        if (pass.first == stream)
          CheckTimes(ids, scored, 1, 1, absl::StrCat("scored in pass ", pass.second));
      }
    }
  }
  bool EndedEarly() const {
    return shape_.max_steps > 0 &&
           training_.counted_steps() >= static_cast<uint64_t>(shape_.max_steps);
  }
  void CheckTimes(const std::set<uint64_t>& ids, const std::map<uint64_t, int>& seen, int at_least,
                  int at_most, const std::string& what) {
    for (const uint64_t id : ids) {
      const auto at = seen.find(id);
      const int got = at == seen.end() ? 0 : at->second;
      if (got < at_least || got > at_most)
        Violate(absl::StrCat("sample ", id, " was ", what, " ", got, " times, not ", at_most));
    }
    if (seen.size() > ids.size()) Violate(absl::StrCat("samples that do not exist were ", what));
  }

  // What one embedding PS holds for `keys`, by a Lookup of evaluation: values, and whether each row
  // is there.
  void ReadRows(int ps, uint32_t table, int row_values, const std::vector<uint64_t>& keys,
                std::vector<float>* values, std::vector<bool>* present) {
    LookupHeader header;
    *header.mutable_envelope() = envelope_;
    header.set_training(false);
    TableKeys* asked = header.add_tables();
    asked->set_table(table);
    asked->set_num_keys(keys.size());
    rpc::PayloadBuilder builder;
    builder.Reserve<uint64_t>(keys.size(), asked->mutable_keys());
    builder.Allocate();
    std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(asked->keys()).begin());
    rpc::Message request{header.SerializeAsString(), builder.Take()};
    bool done = false;
    pss_[ps]->Handle(rpc::kLookup, std::move(request), [&](absl::StatusOr<rpc::Message> answer) {
      CHECK_OK(answer.status());
      LookupAnswerHeader got;
      CHECK(got.ParseFromString(answer->header));
      const auto rows = rpc::SectionView<float>(answer->payload, got.tables(0).values(),
                                                keys.size() * row_values, "values");
      const auto bits = rpc::SectionView<uint8_t>(answer->payload, got.tables(0).presence(),
                                                  (keys.size() + 7) / 8, "presence");
      CHECK_OK(rows.status());
      CHECK_OK(bits.status());
      values->assign(rows->begin(), rows->end());
      for (size_t i = 0; i < keys.size(); ++i) present->push_back(((*bits)[i / 8] >> (i % 8)) & 1);
      done = true;
    });
    CHECK(loop_.RunUntil([&] { return done; }, loop_.NowUs() + 1000000, loop_.events() + 100000));
  }

  // Rows exist for the keys of trained samples and for no others, with the values that every push
  // applied once gives.
  void CheckRows() {
    std::map<uint64_t, std::vector<double>> expected;
    if (shape_.ordered) {
      const OracleResult oracle =
          TrainOracle(shape_, shape_.max_steps > 0 ? training_.counted_steps() : kNoLimit);
      if (oracle.steps != training_.counted_steps()) {
        Violate(absl::StrCat("the oracle makes ", oracle.steps, " steps, not ",
                             training_.counted_steps()));
      }
      for (const auto& [key, row] : oracle.rows) expected[key] = {row.begin(), row.end()};
    } else {
      expected = training_.expected_rows();
    }
    uint64_t rows_there = 0;
    for (const auto& ps : pss_) rows_there += ps->Stats()[1].rows();
    if (rows_there != expected.size()) {
      Violate(absl::StrCat("there are ", rows_there, " rows, not ", expected.size()));
    }
    for (const auto& [key, row] : expected) {
      std::vector<float> values;
      std::vector<bool> present;
      ReadRows(PsOfPartition(PartitionOf(key), shape_.ps), 1, kRowValues, {key}, &values, &present);
      if (!present[0]) Violate(absl::StrCat("the row of key ", key, " is missing"));
      for (int d = 0; d < kRowValues; ++d) {
        if (std::abs(values[d] - row[d]) > kTolerance * (1 + std::abs(row[d]))) {
          Violate(
              absl::StrCat("row of key ", key, " value ", d, " is ", values[d], ", not ", row[d]));
        }
      }
    }
    CheckCounters();
  }

  // The counter row has each push of each rank once.
  void CheckCounters() {
    std::vector<float> values;
    std::vector<bool> present;
    ReadRows(PsOfPartition(PartitionOf(CounterKey()), shape_.ps), 0, shape_.ranks, {CounterKey()},
             &values, &present);
    for (int rank = 0; rank < shape_.ranks; ++rank) {
      const auto made = static_cast<float>(training_.pushes_with_gradients()[rank]);
      if (std::abs(values[rank] - made) > kTolerance) {
        Violate(absl::StrCat("rank ", rank, " made ", made, " pushes, ", values[rank],
                             " were applied"));
      }
    }
  }

  const WorldShape shape_;
  const JobConfig job_;
  SimLoop loop_;
  SimNetwork network_;
  SimTraining training_;
  IgnoringObserver observer_;
  Envelope envelope_;
  WorldResult result_;
  std::vector<std::unique_ptr<rpc::Channel>> channels_;
  std::unique_ptr<CoordinatorEngine> coordinator_;
  std::vector<std::unique_ptr<PsEngine>> pss_;
  std::vector<std::unique_ptr<rpc::Handler>> plants_;
  std::vector<rpc::Handler*> ps_handlers_;
  std::vector<std::unique_ptr<EmbeddingWorkerEngine>> workers_;
  std::vector<std::unique_ptr<SplitSupply>> supplies_;
  std::vector<std::unique_ptr<PartSource>> sources_;
  std::vector<std::unique_ptr<LoaderEngine>> loaders_;
  std::vector<std::unique_ptr<RankEngine>> ranks_;
  std::vector<RunResult> results_;
};

}  // namespace

WorldResult RunWorld(const WorldShape& shape, Plant plant, const NetworkFaults& faults) {
  World world(shape, plant, faults);
  return world.Run();
}

std::string Describe(const WorldShape& shape) {
  std::string splits;
  for (const auto& rows : shape.split_rows)
    absl::StrAppend(&splits, " [", absl::StrJoin(rows, " "), "]");
  return absl::StrCat(
      "seed ", shape.seed, shape.ordered ? " sync" : " hybrid", ": ", shape.loaders, " loaders, ",
      shape.workers, " embedding workers, ", shape.ps, " PSs, ", shape.ranks, " ranks, ",
      shape.lanes, " lanes, staleness ", shape.max_staleness, ", ", shape.epochs, " epochs, batch ",
      shape.global_batch_size, ", room ", shape.room_parts, ", evaluation every ",
      shape.evaluate_every_steps, " steps, ", shape.has_non_finite_steps ? "not all finite, " : "",
      "max_steps ", shape.max_steps, ", splits", splits);
}

}  // namespace satrap::simulation
