#include "nn_worker/rank/fake_cluster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/batch/part_placement.h"
#include "common/checkpoint/run_log.h"
#include "common/rpc/hot_methods.h"
#include "nn_worker/rank/step_normalizer.h"

namespace satrap {

std::string NameOf(const PartId& id) {
  return absl::StrCat(id.stream() == TRAIN_STREAM ? "" : Stream_Name(id.stream()) + ":", id.epoch(),
                      ".", id.lane(), ".", id.seq(), ".", id.part());
}

namespace {

ProvenanceRange ProvenanceOf(const FakePart& part) {
  ProvenanceRange range;
  range.set_split(part.id.lane() * 100 + part.id.part());
  range.set_block(part.id.seq());
  range.set_to(part.samples);
  range.set_block_rows(part.samples);
  return range;
}

std::string Describe(const CutPlan& plan) {
  return absl::StrCat(plan.position.step(), plan.best ? " best" : "", plan.last ? " last" : "",
                      plan.wish > 0 ? " wished" : "", plan.leave ? " leave" : "");
}

}  // namespace

// An embedding worker: queues of parts, waiting requests, exactly-once windows.
class FakeCluster::Worker {
 public:
  Worker(FakeCluster* cluster, uint64_t first_handle)
      : cluster_(cluster),
        windows_(&cluster->executor, cluster->options_.timeouts.hold_ms * 1000),
        next_handle_(first_handle) {}

  void Put(const FakePart& part) {
    parts_[{part.id.stream(), part.id.epoch()}].push_back(part);
    ServeWaiting();
  }

  void End(Stream stream, uint32_t epoch) {
    ended_.insert({stream, epoch});
    ServeWaiting();
  }

  void Handle(const rpc::Method& method, const rpc::Message& request, rpc::Callback respond) {
    if (cluster_->broken_method == method.path) {
      respond(absl::InvalidArgumentError("broken"));
      return;
    }
    if (method == rpc::kNextBatch) {
      Run<NextBatchHeader>(method, request, std::move(respond), &Worker::NextBatch);
    } else if (method == rpc::kPushGradients) {
      Run<PushGradientsHeader>(method, request, std::move(respond), &Worker::Push);
    } else {
      CHECK(method == rpc::kAck);
      Run<AckHeader>(method, request, std::move(respond), &Worker::Ack);
    }
  }

 private:
  using Key = std::pair<Stream, uint32_t>;
  struct Waiting {
    NextBatchHeader header;
    rpc::AnswerWindow* window;
  };
  struct HandedOut {
    FakePart part;
    int rank;
  };

  template <typename Header>
  void Run(const rpc::Method& method, const rpc::Message& request, rpc::Callback respond,
           void (Worker::*run)(const Header&, rpc::AnswerWindow*)) {
    Header header;
    CHECK(header.ParseFromString(request.header));
    int stream = TRAIN_STREAM;
    if constexpr (!std::is_same_v<Header, PushGradientsHeader>) stream = header.stream();
    const int method_index = method == rpc::kNextBatch ? 0 : method == rpc::kAck ? 1 : 2;
    rpc::AnswerWindow* window = windows_.Get(header.call().sender(), stream + 10 * method_index);
    if (window->Admit(header.call().number(), header.call().oldest_open(), std::move(respond)) ==
        rpc::Admission::kRun) {
      (this->*run)(header, window);
    }
  }

  void NextBatch(const NextBatchHeader& header, rpc::AnswerWindow* window) {
    const uint64_t key = next_waiting_++;
    waiting_[key] = Waiting{header, window};
    ServeWaiting();
    if (header.has_wanted() || waiting_.count(key) == 0) return;
    cluster_->executor.PostAfter(int64_t{header.wait_ms()} * 1000, [this, key] {
      const auto waiting = waiting_.find(key);
      if (waiting == waiting_.end()) return;
      Answer(waiting->second, NextBatchAnswerHeader::NOT_YET);
      waiting_.erase(key);
    });
  }

  bool Ended(Key key) { return ended_.count(key) > 0 && parts_[key].empty(); }

  void ServeWaiting() {
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      it = Serve(it->second) ? waiting_.erase(it) : std::next(it);
    }
  }

  bool Serve(const Waiting& waiting) {
    const Key key = {waiting.header.stream(), waiting.header.epoch()};
    // A later epoch is not begun before the current one has ended.
    const uint32_t first = key.first == TRAIN_STREAM ? cluster_->options_.position.epoch() : 0;
    for (uint32_t earlier = first; earlier < key.second; ++earlier) {
      if (!Ended({key.first, earlier})) return false;
    }
    auto& queue = parts_[key];
    const auto part = std::find_if(queue.begin(), queue.end(), [&](const FakePart& p) {
      return !waiting.header.has_wanted() || NameOf(p.id) == NameOf(waiting.header.wanted());
    });
    if (part != queue.end()) {
      const FakePart copy = *part;
      queue.erase(part);
      HandOut(waiting, copy);
      return true;
    }
    if (!Ended(key)) return false;
    CHECK(!waiting.header.has_wanted()) << "a request for a part that does not exist";
    Answer(waiting, NextBatchAnswerHeader::ENDED);
    return true;
  }

  void HandOut(const Waiting& waiting, const FakePart& part) {
    const int rank = static_cast<int>(waiting.header.call().sender());
    CHECK(cluster_->handed_out_.insert(NameOf(part.id)).second || cluster_->allow_twice);
    if (part.id.stream() == TRAIN_STREAM) {
      CHECK(cluster_->outstanding_[rank] < cluster_->AllowedParts())
          << "rank " << rank << " is too stale";
      ++cluster_->outstanding_[rank];
      if (waiting.header.has_wanted()) {
        for (const auto& [step, count] : cluster_->pushes_of_step_) {
          CHECK(step < waiting.header.step() && count == cluster_->options_.num_ranks);
        }
        CHECK(cluster_->options_.position.step() + cluster_->pushes_of_step_.size() ==
              waiting.header.step());
      }
    } else {
      for (const int outstanding : cluster_->outstanding_) CHECK(outstanding == 0);
    }
    const uint64_t handle = next_handle_++;
    handed_out_[handle] = HandedOut{part, rank};
    NextBatchAnswerHeader header;
    header.set_result(NextBatchAnswerHeader::PART);
    header.set_handle(handle);
    *header.mutable_part()->mutable_id() = part.id;
    header.mutable_part()->set_samples(part.samples);
    header.mutable_part()->set_last_of_lane(part.last_of_lane);
    // The fakes have no payload: the weight rides where a real part has the position of its batch.
    header.mutable_part()->set_first_sample(static_cast<uint64_t>(part.weight * 1000));
    if (part.samples > 0) *header.mutable_part()->add_provenance() = ProvenanceOf(part);
    waiting.window->Finish(waiting.header.call().number(),
                           rpc::Message{header.SerializeAsString(), Buffer()});
  }

  void Answer(const Waiting& waiting, NextBatchAnswerHeader::Result result) {
    NextBatchAnswerHeader header;
    header.set_result(result);
    waiting.window->Finish(waiting.header.call().number(),
                           rpc::Message{header.SerializeAsString(), Buffer()});
  }

  void Push(const PushGradientsHeader& header, rpc::AnswerWindow* window) {
    const HandedOut ended = EndPart(header.handle(), header.call().sender());
    CHECK(header.step().normalizer() > 0);
    ++cluster_->pushes_of_step_[header.step().step()];
    cluster_->pushes.push_back(FakeCluster::Push{ended.rank, header.step(), NameOf(ended.part.id),
                                                 header.tables_size() > 0});
    // An embedding PS answers an ordered push when all ranks' pushes of the step are there.
    waiting_pushes_.push_back({header.step().step(), header.call().number(), window});
    for (auto& worker : cluster_->workers_) worker->AnswerPushes();
  }

  void AnswerPushes() {
    for (auto it = waiting_pushes_.begin(); it != waiting_pushes_.end();) {
      if (cluster_->options_.ordered &&
          cluster_->pushes_of_step_[it->step] < cluster_->options_.num_ranks) {
        ++it;
        continue;
      }
      it->window->Finish(it->number, rpc::Message());
      it = waiting_pushes_.erase(it);
    }
  }

  void Ack(const AckHeader& header, rpc::AnswerWindow* window) {
    const HandedOut ended = EndPart(header.handle(), header.call().sender());
    CHECK(ended.part.id.stream() == header.stream());
    cluster_->acks.push_back(NameOf(ended.part.id));
    window->Finish(header.call().number(), rpc::Message());
  }

  HandedOut EndPart(uint64_t handle, uint32_t rank) {
    const auto found = handed_out_.find(handle);
    CHECK(found != handed_out_.end()) << "handle " << handle << " is not open";
    const HandedOut ended = found->second;
    CHECK(ended.rank == static_cast<int>(rank));
    handed_out_.erase(found);
    if (ended.part.id.stream() == TRAIN_STREAM) {
      --cluster_->outstanding_[ended.rank];
      cluster_->released_.insert(NameOf(ended.part.id));
      if (ended.part.samples > 0 && !cluster_->allow_twice) {
        CHECK_OK(cluster_->ended_parts_.Add(ended.part.id.epoch(), ProvenanceOf(ended.part)));
      }
    }
    return ended;
  }

  struct WaitingPush {
    uint64_t step;
    uint64_t number;
    rpc::AnswerWindow* window;
  };

  FakeCluster* const cluster_;
  rpc::AnswerWindows windows_;
  std::map<Key, std::deque<FakePart>> parts_;
  std::set<Key> ended_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_waiting_ = 0;
  std::map<uint64_t, HandedOut> handed_out_;
  uint64_t next_handle_;
  std::vector<WaitingPush> waiting_pushes_;
};

// The connection of a rank to a worker.
class FakeCluster::Link final : public rpc::Channel {
 public:
  Link(FakeCluster* cluster, Worker* worker) : cluster_(cluster), worker_(worker) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    auto once = std::make_shared<rpc::Callback>(std::move(done));
    auto finish = [once](absl::StatusOr<rpc::Message> answer) {
      if (rpc::Callback callback = std::exchange(*once, nullptr)) callback(std::move(answer));
    };
    cluster_->executor.PostAfter(timeout_ms * 1000,
                                 [finish] { finish(absl::DeadlineExceededError("late")); });
    const int copies = cluster_->Happens(cluster_->network_.repeat) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      if (cluster_->Happens(cluster_->network_.loss)) continue;
      cluster_->executor.PostAfter(cluster_->RandomDelayUs(), [this, method, request, finish] {
        worker_->Handle(method, request, [this, finish](absl::StatusOr<rpc::Message> answer) {
          if (cluster_->Happens(cluster_->network_.loss)) return;
          cluster_->executor.PostAfter(cluster_->RandomDelayUs(),
                                       [finish, answer] { finish(answer); });
        });
      });
    }
  }

 private:
  FakeCluster* const cluster_;
  Worker* const worker_;
};

class FakeCluster::Trainer final : public StepTrainer {
 public:
  Trainer(FakeCluster* cluster, int rank) : cluster_(cluster), rank_(rank) {}

  void JoinStep(uint64_t step, absl::optional<PartInput> part, StepFlags flags,
                absl::AnyInvocable<void(absl::StatusOr<StepResult>)> done) override {
    Joiner joiner{step, std::move(part), flags, std::move(done), true};
    auto shared = std::make_shared<Joiner>(std::move(joiner));
    cluster_->executor.PostAfter(cluster_->RandomDelayUs(),
                                 [this, shared] { cluster_->JoinStep(rank_, std::move(*shared)); });
  }

  void Score(PartInput part, absl::AnyInvocable<void(absl::Status)> done) override {
    cluster_->scored.push_back(NameOf(part.header.part().id()));
    cluster_->scored_samples_ += part.header.part().samples();
    done(absl::OkStatus());
  }

  void MergeEvaluation(absl::AnyInvocable<void(absl::StatusOr<MetricValues>)> done) override {
    cluster_->Barrier(rank_, "merge", [this, done = std::move(done)]() mutable {
      MetricValues values;
      values.set_samples(cluster_->scored_samples_);
      const size_t n = cluster_->validations_;
      values.set_auc(n < cluster_->aucs.size() ? cluster_->aucs[n] : .5);
      done(values);
    });
  }

  void BeginCut(CutPlan plan, absl::AnyInvocable<void(absl::StatusOr<CutMarked>)> done,
                absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)> ended) override {
    CHECK(!cluster_->restored_) << "a cut after a restore";
    auto& planners = cluster_->planners_;
    planners.push_back({std::move(plan), std::move(done), std::move(ended)});
    // Rank 0's plan comes first.
    if (rank_ == 0) std::swap(planners.front(), planners.back());
    if (static_cast<int>(planners.size()) == cluster_->options_.num_ranks) cluster_->MarkCut();
  }

  void AwaitCut(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) override {
    cluster_->Barrier(rank_, "await", [this, done = std::move(done)]() mutable {
      AnswerWhenEnded(std::move(done));
    });
  }

  void RestoreModel(const std::string& cut, absl::AnyInvocable<void(absl::Status)> done) override {
    cluster_->Barrier(rank_, "restore", [this, cut, done = std::move(done)]() mutable {
      if (rank_ == 0) cluster_->saved.push_back("restored " + cut);
      cluster_->restored_ = true;
      done(absl::OkStatus());
    });
  }

 private:
  FakeCluster* const cluster_;
  void AnswerWhenEnded(absl::AnyInvocable<void(absl::StatusOr<bool>)> done) {
    if (cluster_->writing_) {
      cluster_->executor.PostAfter(
          1000, [this, done = std::move(done)]() mutable { AnswerWhenEnded(std::move(done)); });
    } else if (!cluster_->broken_cut.ok()) {
      done(cluster_->broken_cut);
    } else {
      done(cluster_->cuts.back().committed);
    }
  }

  const int rank_;
};

class FakeCluster::Observer final : public RankObserver {
 public:
  Observer(FakeCluster* cluster, int rank) : cluster_(cluster), rank_(rank) {}
  void OnPhase(absl::string_view phase) override {
    if (rank_ == 0) cluster_->phases.push_back(std::string(phase));
  }
  void OnStep(const StepEvent& event) override {
    CHECK(event.staleness < cluster_->options_.max_staleness);
    if (rank_ == 0 && event.had_part) cluster_->staleness.push_back(event.staleness);
  }
  void OnEvaluation(const EvaluationEvent& event) override {
    if (rank_ == 0) cluster_->evaluations.push_back(event);
  }
  void OnCutPause(double seconds) override {
    if (rank_ == 0) cluster_->pauses.push_back(seconds);
  }
  void OnCutEnded(const CutOutcome&) override {
    CHECK(rank_ == 0);
    ++cluster_->cut_ends;
  }

 private:
  FakeCluster* const cluster_;
  const int rank_;
};

FakeCluster::FakeCluster(RankOptions options, int num_workers, FakeNetwork network,
                         KillPoints* kill_points)
    : options_(std::move(options)), network_(network), random_(network.seed) {
  for (int w = 0; w < num_workers; ++w) {
    workers_.push_back(std::make_unique<Worker>(this, 1000 * (w + 1)));
  }
  joiners_.resize(options_.num_ranks);
  barrier_count_.resize(options_.num_ranks, 0);
  outstanding_.resize(options_.num_ranks, 0);
  for (int r = 0; r < options_.num_ranks; ++r) {
    auto rank = std::make_unique<Rank>();
    std::vector<rpc::Channel*> channels;
    for (auto& worker : workers_) {
      rank->links.push_back(std::make_unique<Link>(this, worker.get()));
      channels.push_back(rank->links.back().get());
    }
    rank->trainer = std::make_unique<Trainer>(this, r);
    rank->observer = std::make_unique<Observer>(this, r);
    RankOptions rank_options = options_;
    rank_options.rank = r;
    rank->engine = std::make_unique<RankEngine>(
        rank_options, &executor, channels, rank->trainer.get(), rank->observer.get(),
        [this](absl::Status status) { failures.push_back(std::move(status)); },
        [this](const RunResult& result) { results.push_back(result); }, kill_points);
    ranks_.push_back(std::move(rank));
  }
}

FakeCluster::~FakeCluster() = default;

void FakeCluster::Put(int worker, const FakePart& part) {
  puts_.push_back({worker, part});
  workers_[worker]->Put(part);
}

void FakeCluster::PutRest(const FakeCluster& first, const FakeCut& cut) {
  for (const auto& [worker, part] : first.puts_) {
    if (cut.released.count(NameOf(part.id)) == 0) Put(worker, part);
  }
  for (const auto& [stream, epoch] : first.ends_) End(stream, epoch);
}

void FakeCluster::End(Stream stream, uint32_t epoch) {
  ends_.insert({stream, epoch});
  for (auto& worker : workers_) worker->End(stream, epoch);
}

void FakeCluster::PutOrderedEpoch(uint32_t epoch, const std::vector<int>& batches_of_lane) {
  for (size_t lane = 0; lane < batches_of_lane.size(); ++lane) {
    for (int seq = 0; seq < batches_of_lane[lane]; ++seq) {
      for (int r = 0; r < options_.num_ranks; ++r) {
        FakePart part;
        part.id.set_epoch(epoch);
        part.id.set_lane(lane);
        part.id.set_seq(seq);
        part.id.set_part(r);
        part.last_of_lane = seq + 1 == batches_of_lane[lane];
        Put(WorkerOfPart(lane, seq, r, static_cast<int>(workers_.size())), part);
      }
    }
  }
  End(TRAIN_STREAM, epoch);
}

void FakeCluster::PutEpoch(Stream stream, uint32_t epoch, int count) {
  for (int i = 0; i < count; ++i) {
    FakePart part;
    part.id.set_stream(stream);
    part.id.set_epoch(epoch);
    part.id.set_seq(i);
    Put(i % static_cast<int>(workers_.size()), part);
  }
  End(stream, epoch);
}

void FakeCluster::Start() {
  for (auto& rank : ranks_) rank->engine->Start();
}

bool FakeCluster::Run() {
  for (int i = 0; i < 36000; ++i) {
    if (!failures.empty() || static_cast<int>(results.size()) == options_.num_ranks) return true;
    RunFor(100);
  }
  return false;
}

int FakeCluster::AllowedParts() const {
  const bool warm =
      options_.staleness_warmup_steps == 0 ||
      options_.position.step() + CountedSteps().size() >= options_.staleness_warmup_steps;
  return warm ? options_.max_staleness : 1;
}

int64_t FakeCluster::RandomDelayUs() {
  return network_.max_delay_us == 0 ? 0
                                    : static_cast<int64_t>(random_.Below(network_.max_delay_us));
}

void FakeCluster::JoinStep(int rank, Joiner joiner) {
  CHECK(!joiners_[rank].there);
  joiners_[rank] = std::move(joiner);
  for (const Joiner& other : joiners_) {
    if (!other.there) return;
  }
  FinishStep();
}

void FakeCluster::FinishStep() {
  StepResult all;
  Step step{joiners_[0].step, 0, 0, {}};
  for (const Joiner& joiner : joiners_) {
    CHECK(joiner.step == step.number) << "ranks disagree on the step";
    CHECK(!joiner.flags.idle || !joiner.part.has_value());
    if (joiner.flags.idle) ++all.idle_ranks;
    if (joiner.flags.stop) all.stop = true;
    CHECK(!joiner.flags.cut || &joiner == &joiners_[0]) << "another rank than 0 asks for a cut";
    if (joiner.flags.cut) all.cut = true;
    if (joiner.part.has_value()) {
      const PartDescription& part = joiner.part->header.part();
      all.samples += part.samples();
      all.weight += static_cast<float>(part.first_sample()) / 1000;
      step.parts.push_back(NameOf(part.id()));
    } else {
      step.parts.push_back("-");
    }
  }
  all.finite = not_finite_steps.count(step.number) == 0;
  if (all.weight > 0) {
    all.normalizer = StepNormalizer(all.weight, all.samples, global_batch_size);
  }
  step.weight = all.weight;
  step.idle_ranks = all.idle_ranks;
  steps.push_back(step);
  for (Joiner& joiner : joiners_) {
    StepResult result = all;
    if (joiner.part.has_value() && result.weight > 0 && result.finite) {
      result.gradients.header.add_tables();
    }
    joiner.there = false;
    auto done = std::make_shared<Joiner>(std::move(joiner));
    executor.PostAfter(RandomDelayUs(), [done, result] { done->done(result); });
  }
}

// All ranks have come. A cut that is being written still ends first.
void FakeCluster::MarkCut() {
  if (writing_) {
    executor.PostAfter(1000, [this] { MarkCut(); });
    return;
  }
  FakeCut cut;
  cut.plan = planners_[0].plan;
  cut.name = CutName(options_.envelope.generation(), cut.plan.number);
  for (const int outstanding : outstanding_) CHECK(outstanding == 0);
  for (const Planner& planner : planners_) {
    CHECK(planner.plan.number == cut.plan.number && planner.plan.best == cut.plan.best &&
          planner.plan.last == cut.plan.last);
    RunPosition theirs = planner.plan.position;
    theirs.set_train_seconds(cut.plan.position.train_seconds());
    CHECK(theirs.SerializeAsString() == cut.plan.position.SerializeAsString())
        << theirs.ShortDebugString() << " and " << cut.plan.position.ShortDebugString();
    CHECK_OK(ledger_.Merge(*Ledger::FromState(planner.plan.released)));
  }
  CHECK(ledger_.ToState().SerializeAsString() == ended_parts_.ToState().SerializeAsString())
      << ledger_.ToState().ShortDebugString() << " and "
      << ended_parts_.ToState().ShortDebugString();
  cut.released = released_;
  cut.ledger = ledger_;
  saved.push_back(Describe(cut.plan));
  cuts.push_back(std::move(cut));
  writing_ = true;
  cut_ended_ = std::move(planners_[0].ended);
  executor.PostAfter(cut_writing_ms * 1000, [this, i = cuts.size() - 1] { EndCut(i); });
  std::vector<Planner> planners;
  planners.swap(planners_);
  const CutMarked marked = {IsWaitedFor(cuts.back().plan), cuts.back().plan.leave};
  for (Planner& planner : planners) planner.done(marked);
}

void FakeCluster::EndCut(size_t cut) {
  writing_ = false;
  if (!broken_cut.ok()) return cut_ended_(broken_cut);
  CutOutcome outcome;
  outcome.name = cuts[cut].name;
  outcome.seconds = static_cast<double>(cut_writing_ms) * 1e-3;
  outcome.committed = cuts[cut].committed = abandoned_cuts.count(cuts[cut].plan.number) == 0;
  if (!outcome.committed) saved[cut] += " abandoned";
  cut_ended_(std::move(outcome));
}

void FakeCluster::Barrier(int rank, const std::string& what, absl::AnyInvocable<void()> done) {
  auto& waiting = barriers_[absl::StrCat(what, " ", barrier_count_[rank]++)];
  waiting.push_back(std::move(done));
  if (static_cast<int>(waiting.size()) < options_.num_ranks) return;
  for (auto& callback : waiting) callback();
  if (what == "merge") {
    ++validations_;
    scored_samples_ = 0;
  }
}

std::vector<uint64_t> FakeCluster::CountedSteps() const {
  std::vector<uint64_t> numbers;
  for (const Step& step : steps) {
    if (step.weight > 0) numbers.push_back(step.number);
  }
  return numbers;
}

std::multiset<std::string> FakeCluster::PushedParts() const {
  std::multiset<std::string> parts;
  for (const Push& push : pushes) parts.insert(push.part);
  return parts;
}

}  // namespace satrap
