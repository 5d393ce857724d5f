#include "data_loader/batch/parsed_part_source.h"

#include <deque>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/thread/mutex.h"

namespace satrap {

struct ParsedPartSource::Rep : std::enable_shared_from_this<ParsedPartSource::Rep> {
  enum class State { kIdle, kRunning, kWaitsForSplit, kEnded };
  struct Maker {
    // While the state is kRunning, only the task that set that state uses this, without the lock.
    std::unique_ptr<BatchMaker> batches;
    State state = State::kEnded;
  };

  Rep(std::shared_ptr<const StreamSpec> stream_spec, const Options& options, Executor* executor,
      SplitSupply* split_supply)
      : spec(std::move(stream_spec)),
        lane(options.lane),
        capacity_parts(options.capacity_parts),
        parse_executor(executor),
        supply(split_supply),
        epoch(spec->begin.epoch),
        next_seq(options.first_seq),
        has_left(options.has_left) {}

  const std::shared_ptr<const StreamSpec> spec;
  const uint32_t lane;
  const size_t capacity_parts;
  Executor* const parse_executor;
  SplitSupply* const supply;

  Mutex mutex;
  std::vector<Maker> makers GUARDED_BY(mutex);
  std::deque<Part> ready GUARDED_BY(mutex);
  PartSource::Callback asked GUARDED_BY(mutex);
  absl::Status error GUARDED_BY(mutex);
  bool stopped GUARDED_BY(mutex) = false;
  bool in_epoch GUARDED_BY(mutex) = false;
  uint32_t epoch GUARDED_BY(mutex);  // the current epoch, or the next one if not in_epoch
  uint64_t next_seq GUARDED_BY(mutex);
  bool has_left GUARDED_BY(mutex);  // whether the lane has left in `epoch`

  void Ask(PartSource::Callback done);
  void Stop();
  // Posts a task for each idle maker if the queue has room.
  void StartMakers() REQUIRES(mutex);
  void RunMaker(size_t index);
  void Finished(size_t index, const absl::StatusOr<BatchMaker::Result>& result,
                std::vector<Part> parts);
  void AskForSplit(size_t index, uint32_t of_epoch);
  void GotSplit(size_t index, absl::StatusOr<absl::optional<uint32_t>> split);
  void AddBatch(std::vector<Part> parts) REQUIRES(mutex);
  bool AllEnded() const REQUIRES(mutex);
  // If a Next is open, calls its callback once there is a part, an error or the end of the epoch.
  void Answer();
};

void ParsedPartSource::Rep::Ask(PartSource::Callback done) {
  {
    MutexLock lock(&mutex);
    CHECK(!asked) << "Next was called before the previous call was answered";
    asked = std::move(done);
    if (!in_epoch) {
      in_epoch = true;
      for (Maker& maker : makers) {
        if (has_left) break;
        maker.batches->BeginEpoch(epoch);
        maker.state = State::kIdle;
      }
    }
  }
  Answer();
}

void ParsedPartSource::Rep::Stop() {
  MutexLock lock(&mutex);
  stopped = true;
  asked = nullptr;
}

void ParsedPartSource::Rep::StartMakers() {
  if (stopped || !error.ok()) return;
  for (size_t i = 0; i < makers.size() && ready.size() < capacity_parts; ++i) {
    if (makers[i].state != State::kIdle) continue;
    makers[i].state = State::kRunning;
    parse_executor->Post([self = shared_from_this(), i] { self->RunMaker(i); });
  }
}

// Runs on a parsing thread. Makes the batch without holding the lock, because making it takes
// milliseconds and may wait for the disk.
void ParsedPartSource::Rep::RunMaker(size_t index) {
  BatchMaker* batches;
  {
    MutexLock lock(&mutex);
    if (stopped) return;
    batches = makers[index].batches.get();
  }
  std::vector<Part> parts;
  const absl::StatusOr<BatchMaker::Result> result = batches->MakeBatch(&parts);
  Finished(index, result, std::move(parts));
}

void ParsedPartSource::Rep::Finished(size_t index, const absl::StatusOr<BatchMaker::Result>& result,
                                     std::vector<Part> parts) {
  bool needs_split = false;
  uint32_t of_epoch = 0;
  {
    MutexLock lock(&mutex);
    if (stopped) return;
    Maker& maker = makers[index];
    if (!result.ok()) {
      error = result.status();
      maker.state = State::kEnded;
    } else if (*result == BatchMaker::Result::kBatch) {
      AddBatch(std::move(parts));
      maker.state = State::kIdle;
    } else if (*result == BatchMaker::Result::kNeedsSplit) {
      maker.state = State::kWaitsForSplit;
      needs_split = true;
      of_epoch = epoch;
    } else if (*result == BatchMaker::Result::kNothingYet) {
      maker.state = State::kIdle;  // Answer posts it again, after the waiting tasks
    } else {
      maker.state = State::kEnded;
    }
  }
  // The lock must be released here: both calls below run callbacks, perhaps at once and on this
  // thread.
  if (needs_split) {
    AskForSplit(index, of_epoch);
  } else {
    Answer();
  }
}

void ParsedPartSource::Rep::AddBatch(std::vector<Part> parts) {
  for (Part& part : parts) {
    part.header.mutable_part()->mutable_id()->set_lane(lane);
    part.header.mutable_part()->mutable_id()->set_seq(next_seq);
    ready.push_back(std::move(part));
  }
  ++next_seq;
}

bool ParsedPartSource::Rep::AllEnded() const {
  for (const Maker& maker : makers) {
    if (maker.state != State::kEnded) return false;
  }
  return true;
}

void ParsedPartSource::Rep::AskForSplit(size_t index, uint32_t of_epoch) {
  supply->NextSplit(
      of_epoch, [self = shared_from_this(), index](absl::StatusOr<absl::optional<uint32_t>> split) {
        self->GotSplit(index, std::move(split));
      });
}

void ParsedPartSource::Rep::GotSplit(size_t index, absl::StatusOr<absl::optional<uint32_t>> split) {
  {
    MutexLock lock(&mutex);
    if (stopped) return;
    Maker& maker = makers[index];
    if (!split.ok()) {
      error = split.status();
      maker.state = State::kEnded;
    } else {
      if (split->has_value()) {
        maker.batches->AddSplit(**split);
      } else {
        maker.batches->EndSplits();
      }
      maker.state = State::kIdle;
    }
  }
  Answer();
}

void ParsedPartSource::Rep::Answer() {
  PartSource::Callback done;
  absl::StatusOr<absl::optional<Part>> answer = absl::optional<Part>();
  {
    MutexLock lock(&mutex);
    StartMakers();
    if (!asked) return;
    // An evaluation stream repeats its passes without end. A loader is slowed down only by parts of
    // a later pass that wait at their worker, so a loader without records would race through all
    // passes. Therefore it sends one part of zero samples in each pass.
    if (spec->stream != TRAIN_STREAM && AllEnded() && next_seq == 0) {
      AddBatch({EmptyPart(*spec, epoch)});
    }
    if (!error.ok()) {
      answer = error;
    } else if (!ready.empty()) {
      answer = absl::optional<Part>(std::move(ready.front()));
      ready.pop_front();
      StartMakers();  // the queue has room again
    } else if (!AllEnded()) {
      return;
    } else {
      in_epoch = false;  // the next call of Next begins the following epoch
      ++epoch;
      next_seq = 0;
      has_left = false;
    }
    done = std::exchange(asked, nullptr);
  }
  done(std::move(answer));
}

ParsedPartSource::ParsedPartSource(std::shared_ptr<const StreamSpec> spec, const Options& options,
                                   Executor* parse_executor, SplitSupply* supply)
    : rep_(std::make_shared<Rep>(spec, options, parse_executor, supply)) {
  CHECK(options.num_makers >= 1 && options.capacity_parts >= 1);
  CHECK(!spec->ordered || options.num_makers == 1)
      << "several makers would mix the order of a lane";
  MutexLock lock(&rep_->mutex);
  for (int i = 0; i < options.num_makers; ++i) {
    rep_->makers.emplace_back();
    rep_->makers.back().batches = options.new_maker ? options.new_maker(i) : NewBatchMaker(spec);
  }
}

ParsedPartSource::~ParsedPartSource() { rep_->Stop(); }

void ParsedPartSource::Next(Callback done) { rep_->Ask(std::move(done)); }

size_t ParsedPartSource::ready_parts() const {
  MutexLock lock(&rep_->mutex);
  return rep_->ready.size();
}

}  // namespace satrap
