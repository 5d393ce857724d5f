#include "deploy/coordinator/topics/run_topics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/role/ending.h"

namespace satrap {
namespace {

bool WaitingMayCure(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

const StreamTopics* FindStream(const std::vector<StreamTopics>& topics, uint32_t stream) {
  for (const StreamTopics& each : topics) {
    if (each.stream() == stream) return &each;
  }
  return nullptr;
}

// The topics of each stream, from the first entry that names it.
std::vector<StreamTopics> FirstTopicsOf(const RunLog& log) {
  std::vector<StreamTopics> topics;
  for (const RunLogEntry& entry : log.entries()) {
    for (const StreamTopics& added : entry.topics().topics()) {
      if (FindStream(topics, added.stream()) == nullptr) topics.push_back(added);
    }
  }
  return topics;
}

absl::optional<TopicInput> TrainTopicsOf(const JobConfig& job) {
  for (TopicInput& stream : TopicInputsOf(job)) {
    if (stream.stream == TRAIN_STREAM) return std::move(stream);
  }
  return absl::nullopt;
}

}  // namespace

RunTopics::RunTopics(const JobConfig& job, const RunTopicsOptions& options, Host* host,
                     const RunLog* log, const RunPosition* position, const LedgerState* ledger)
    : job_(job),
      options_(options),
      host_(host),
      log_(log),
      start_position_(position),
      start_ledger_(ledger),
      train_(TrainTopicsOf(job)),
      known_(TopicInputsOf(job).empty()),
      dealt_(job) {
  CHECK(known_ || (options_.topics != nullptr && options_.topic_executor != nullptr))
      << "the job reads topics";
}

// Runs `question` on the topic executor, and then `take` with its answer on the disk executor.
template <typename Question, typename Answer>
void RunTopics::Ask(Question question, void (RunTopics::*take)(const Answer& answer)) {
  ++open_questions_;
  options_.topic_executor->Post([this, owner = owner_, question = std::move(question), take] {
    Answer answer = question();
    const std::shared_ptr<void> alive = owner.lock();
    if (alive == nullptr) return;
    host_->OnDisk([this, take, answer = std::move(answer)] {
      --open_questions_;
      (this->*take)(answer);
    });
  });
}

void RunTopics::WarnOnce(const char* what, const absl::Status& status,
                         absl::StatusCode* last) const {
  if (!status.ok() && status.code() != *last && options_.warn) {
    options_.warn(absl::StrCat(what, status.message()));
  }
  *last = status.code();
}

void RunTopics::Await(uint32_t loader, Done done) {
  Done& waiting = awaiting_[loader];
  // Answer the loader's earlier attempt, which has timed out. Otherwise many attempts would pile up
  // while no broker answers.
  if (waiting) waiting(absl::UnavailableError("the loader has asked again"));
  waiting = std::move(done);
  if (deadline_us_.has_value()) return;
  double wait_seconds = 0;
  // Wait for a broker only if the run has begun: in a new run, a broker that does not answer
  // probably has a wrong address.
  if (!log_->topics().empty()) {
    for (const TopicInput& stream : TopicInputsOf(job_)) {
      wait_seconds = std::max(wait_seconds, stream.config.broker_wait_seconds());
    }
  }
  deadline_us_ = options_.executor->NowUs() + static_cast<int64_t>(wait_seconds * 1e6);
  AskForTopics();
}

void RunTopics::AskForTopics() {
  Ask([job = job_, known = log_->topics(), now_ms = options_.unix_ms(),
       source = options_.topics] { return FindTopics(job, known, now_ms, source); },
      &RunTopics::TakeTopics);
}

void RunTopics::TakeTopics(const absl::StatusOr<FoundTopics>& found) {
  absl::Status status = found.status();
  if (status.ok()) {
    status = BeginWith(*found);
  } else if (WaitForBroker(status)) {
    return;
  }
  deadline_us_.reset();
  std::map<uint32_t, Done> waiting;
  waiting.swap(awaiting_);
  // If the topics could not be found, the loaders are told how the generation has ended.
  const absl::Status ended = host_->EndedStatus();
  if (!ended.ok()) status = ended;
  for (const auto& [loader, done] : waiting) done(status);
}

// Call after a question has failed. Either asks again later and returns true, or ends the run.
bool RunTopics::WaitForBroker(const absl::Status& status) {
  if (!host_->EndedStatus().ok()) return false;
  const bool has_begun = !log_->topics().empty();
  if (!has_begun || !WaitingMayCure(status)) {
    host_->EndForTopics(EndingOf(Ending::TOPICS, status.message()));
    return false;
  }
  if (options_.executor->NowUs() >= *deadline_us_) {
    // A restart would not help, because every further generation would wait as long again.
    Ending away = EndingOf(
        Ending::TOPICS, absl::StrCat(status.message(),
                                     "; the run has waited for it as long as broker_wait_seconds ",
                                     "says. Once it answers, continue with `satrap resume`"));
    away.set_kind(Ending::PEER_AWAY);
    host_->EndForTopics(std::move(away));
    return false;
  }
  WarnOnce("waiting for the brokers of the run's topics: ", status, &look_trouble_);
  options_.executor->PostAfter(options_.broker_pause_ms * 1000, [this, owner = owner_] {
    const std::shared_ptr<void> alive = owner.lock();
    if (alive != nullptr) host_->OnDisk([this] { AskForTopics(); });
  });
  return true;
}

// Appends to the log the topics that it does not have yet, before any loader is answered.
absl::Status RunTopics::BeginWith(const FoundTopics& found) {
  for (const std::string& warning : found.warnings) {
    if (options_.warn) options_.warn(warning);
  }
  if (found.added.topics_size() > 0) {
    const absl::Status status = host_->AppendTopics(found.added);
    if (!status.ok()) {
      host_->EndForTopics(
          EndingOf(Ending::LOG_NOT_WRITTEN, COORDINATOR, 0,
                   absl::StrCat("coordinator: the topics cannot be written into the run's log: ",
                                status.message())));
      return status;
    }
  }
  topics_ = log_->topics();
  first_topics_ = FirstTopicsOf(*log_);
  known_ = true;
  look_trouble_ = absl::StatusCode::kOk;
  const StreamTopics* train = FindStream(topics_, TRAIN_STREAM);
  if (train == nullptr || !train_.has_value()) return absl::OkStatus();
  {
    MutexLock lock(&mutex_);
    dealt_.Begin(*train);
  }
  // Commit the offsets of the cut again: the previous coordinator may have died after it had linked
  // the cut's entry, but before it committed these offsets.
  if (start_ledger_ == nullptr) return absl::OkStatus();
  return Follow(*start_position_, *start_ledger_);
}

void RunTopics::Tick() {
  if (!train_.has_value() || !IsEndless(*train_)) return;
  MutexLock lock(&mutex_);
  const int64_t now_us = options_.executor->NowUs();
  if (looks_ || now_us < next_look_us_ || !dealt_.begun()) return;
  looks_ = true;
  next_look_us_ = now_us + options_.partitions_period_ms * 1000;
  Ask([stream = *train_, known = dealt_.train(),
       source = options_.topics] { return FindNewPartitions(stream, known, source); },
      &RunTopics::TakePartitions);
}

void RunTopics::TakePartitions(const absl::StatusOr<StreamTopics>& added) {
  absl::Status status = host_->EndedStatus();
  if (!status.ok()) return;
  status = added.status();
  const bool grows = status.ok() && added->partitions_size() > 0;
  const bool takes_them = grows && job_.mode() != JobConfig::SYNC;
  if (takes_them) {
    TopicsEntry entry;
    *entry.add_topics() = *added;
    status = host_->AppendTopics(entry);
  }
  WarnOnce("new partitions cannot be added to the run for now: ", status, &look_trouble_);
  if (grows && !takes_them) WarnOfLeftOut(*added);
  MutexLock lock(&mutex_);
  looks_ = false;
  if (takes_them && status.ok()) dealt_.Add(*added);
}

void RunTopics::WarnOfLeftOut(const StreamTopics& added) {
  const std::string names = PartitionNames(added);
  if (names == left_out_) return;
  left_out_ = names;
  if (!options_.warn) return;
  options_.warn(absl::StrCat("the topics have new partitions, ", names,
                             ", which this run does not read, because mode SYNC fixes the order of "
                             "its partitions; a new run reads them"));
}

void RunTopics::FollowCut(const std::string& cut) {
  if (!train_.has_value()) return;
  const auto manifest = ReadManifest(FolderOfCut(job_.run_dir(), cut), options_.file_system);
  const absl::Status followed =
      manifest.ok() ? Follow(manifest->position(), manifest->ledger()) : manifest.status();
  if (followed.ok() || !options_.warn) return;
  options_.warn(absl::StrCat("the offsets of the consumer group could not be set to those of ", cut,
                             ": ", followed.message()));
}

absl::Status RunTopics::Follow(const RunPosition& position, const LedgerState& state) {
  ASSIGN_OR_RETURN(const Ledger ledger, Ledger::FromState(state));
  MutexLock lock(&mutex_);
  next_commit_ = PlacesOf(dealt_.train(), ConsumedOffsets(dealt_.train(), position, ledger));
  CommitOffsets();
  return absl::OkStatus();
}

void RunTopics::CommitOffsets() {
  if (commits_ || next_commit_.empty()) return;
  commits_ = true;
  Ask([config = train_->config, places = std::exchange(next_commit_, {}),
       source = options_.topics] { return source->Commit(config, places); },
      &RunTopics::TakeCommitted);
}

void RunTopics::TakeCommitted(const absl::Status& status) {
  WarnOnce("the offsets of the consumer group lag behind, which only tools notice: ", status,
           &commit_trouble_);
  MutexLock lock(&mutex_);
  commits_ = false;
  CommitOffsets();
}

void RunTopics::AddTo(uint32_t known, HeartbeatAnswer* answer) const {
  MutexLock lock(&mutex_);
  dealt_.AddTo(known, answer);
}

void RunTopics::AddTo(StatusAnswer* answer) const {
  MutexLock lock(&mutex_);
  dealt_.AddTo(options_.unix_ms(), answer);
}

}  // namespace satrap
