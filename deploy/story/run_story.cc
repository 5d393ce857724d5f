#include "deploy/story/run_story.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "common/learning_rate/batch_scaling.h"
#include "common/refusal/refusal.h"
#include "common/role/coordinator_client.h"
#include "common/role/ending.h"
#include "common/rpc/grpc_channel.h"
#include "common/thread/clock.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/launcher/process/run_progress.h"
#include "deploy/launcher/process/submission_end.h"
#include "deploy/report/data_warnings.h"
#include "deploy/report/progress_line.h"
#include "deploy/report/run_report.h"
#include "deploy/report/run_warnings.h"
#include "deploy/story/run_result.h"

namespace satrap {
namespace {

constexpr int64_t kPeriodMs = 500;
constexpr int64_t kAnswerMs = 1000;
constexpr int kSignalExit = 128;
// How many times to try to write a file of the run's folder, one second apart.
constexpr int kAttempts = 10;
constexpr int64_t kAgainMs = 1000;

// The time in the log from the submission's first generation to its end; nullopt if the log no
// longer has both.
absl::optional<double> SecondsOf(const std::string& run_dir, uint64_t submission) {
  const absl::StatusOr<RunLog> log = RunLog::Open(run_dir, DiskFileSystem());
  if (!log.ok()) return absl::nullopt;
  uint64_t begun_ms = 0;
  uint64_t ended_ms = 0;
  for (const RunLogEntry& entry : log->entries()) {
    const bool is_own = entry.has_generation() && entry.generation().submission() == submission;
    if (is_own && begun_ms == 0) begun_ms = entry.unix_ms();
    if (entry.has_end()) ended_ms = entry.unix_ms();
  }
  if (begun_ms == 0 || ended_ms < begun_ms) return absl::nullopt;
  return static_cast<double>(ended_ms - begun_ms) * 1e-3;
}

class Story {
 public:
  Story(const StoryOptions& options, const std::function<void(const std::string& text)>& print)
      : options_(options),
        print_(print),
        start_ms_(MonotonicMs()),
        refusal_(options.run_dir, options.submission),
        progress_(-1, /*is_terminal=*/false, TerminalColumns, print) {}

  int Tell() {
    while (true) {
      ShowStatus();
      const absl::optional<SubmissionEnd> over =
          EndOfSubmission(options_.run_dir, options_.submission);
      if (over.has_value()) return Finish(*over);
      const absl::optional<Ending> refusal = Refusal();
      if (refusal.has_value()) return Fail(*refusal, /*progress=*/nullptr);
      if (IsAbandoned()) return FailAbandoned();
      const int signal = options_.wait(kPeriodMs);
      if (signal != 0) return kSignalExit + signal;
    }
  }

 private:
  // Why the coordinator refuses to begin the submission. If it cannot write to the folder, only its
  // answers give the reason. An answer does not count once the submission has begun, because then
  // only a coordinator that does not see the log can still refuse.
  absl::optional<Ending> Refusal() const {
    absl::optional<Ending> left = refusal_.New();
    if (left.has_value() || channel_ == nullptr || !IsRefusal(status_, options_.submission) ||
        HasBegun(options_.run_dir, options_.submission)) {
      return left;
    }
    return status_.ending();
  }

  // Whether no coordinator is left to begin the submission. If the folder cannot be written, a
  // coordinator that refuses may be removed before the pod of this story has started.
  bool IsAbandoned() const {
    return channel_ == nullptr &&
           static_cast<double>(MonotonicMs() - heard_ms_) >= options_.start_seconds * 1000 &&
           !HasBegun(options_.run_dir, options_.submission);
  }

  int FailAbandoned() {
    const Ending ending = EndingOf(
        Ending::MEMBER_LOST, COORDINATOR, 0,
        absl::StrCat("the submission has not begun, and its coordinator has not answered for ",
                     options_.start_seconds,
                     " s (kubernetes.start_seconds): see the coordinator's log and the events of "
                     "its pod, correct the cause, and give the command again"));
    // Job RUN-members then ends, too. Otherwise a coordinator that starts later would train a run
    // whose Job has failed.
    LeaveRefusal(options_.run_dir, options_.submission, ending);
    return Fail(ending, /*progress=*/nullptr);
  }

  void ShowStatus() {
    // Make a new channel after each failure: a channel that has failed to connect waits longer and
    // longer before it tries again, but a new coordinator may start at any time.
    if (channel_ == nullptr) {
      auto channel = rpc::GrpcChannel::Create(options_.coordinator, rpc::EndpointOptions());
      if (!channel.ok()) return;
      channel_ = *std::move(channel);
    }
    absl::StatusOr<StatusAnswer> status =
        CoordinatorClient(channel_.get(), Envelope(), kAnswerMs).Status();
    if (!status.ok()) {
      channel_.reset();
      return;
    }
    status_ = *std::move(status);
    heard_ms_ = MonotonicMs();
    progress_.Show(status_, MonotonicMs());
    for (const Restart& restart : status_.restarts()) {
      if (restart.generation() <= told_generation_) continue;
      told_generation_ = restart.generation();
      Print(absl::StrCat("generation ", restart.generation(), " continues from step ",
                         CountText(restart.from_step()), ": ", restart.cause()));
    }
    std::vector<std::string> warnings = of_data_.TakeNew(status_);
    for (std::string& warning : WarningsOfProgress()) warnings.push_back(std::move(warning));
    std::string of_cut = abandoned_.New(status_);
    if (!of_cut.empty()) warnings.push_back(std::move(of_cut));
    for (const std::string& warning : warnings) Print("warning: " + warning);
  }

  std::vector<std::string> WarningsOfProgress() {
    if (!of_progress_.has_value()) {
      const absl::StatusOr<RunProgress> progress = ReadRunProgress(options_.run_dir);
      if (!progress.ok() || !progress->job.has_value()) return {};
      of_progress_.emplace(*progress->job);
      const std::string scaling = BatchScalingText(*progress->job);
      if (!scaling.empty()) Print(scaling);
    }
    return of_progress_->New(status_.train());
  }

  int Finish(const SubmissionEnd& over) {
    if (!over.end.has_value()) {
      return Say("the run continues as a later submission; see the Job of that submission", 0);
    }
    const absl::StatusOr<RunProgress> progress = ReadRunProgress(options_.run_dir);
    if (!progress.ok() || !progress->job.has_value()) {
      return Say(absl::StrCat("the run's log cannot be read: ",
                              progress.ok() ? "it names no job" : progress.status().message()),
                 kExitStartAgain);
    }
    if (StateOf(*over.end) == FAILED) return Fail(over.end->ending(), &*progress);
    JobConfig job = *progress->job;
    job.set_run_dir(options_.run_dir);
    const absl::Status merged =
        WithAttempts([&] { return MergeBadRecords(job, options_.run_dir); });
    if (!merged.ok()) {
      Print(absl::StrCat(
          "warning: the bad records of all loaders could not be merged into one file: ",
          merged.message()));
    }
    if (StateOf(*over.end) == STOPPED) {
      LeaveMessage(RunState_Name(STOPPED));
      return Say(over.end->ending().text(), 0);
    }
    return Report(job, *over.end, *progress);
  }

  // `progress` is null if the submission has not begun.
  int Fail(const Ending& ending, const RunProgress* progress) {
    const std::string& text = ending.text();
    const absl::Status written = WithAttempts(
        [&] { return WriteFileAtomically(options_.run_dir + "/failure.txt", text + "\n"); });
    LeaveEnding(options_.run_dir + kEndingOfRun, ending);
    LeaveMessage(text);
    if (!written.ok()) Print(absl::StrCat("warning: ", written.message()));
    Print(absl::StrCat("the job failed: ", text));
    if (progress != nullptr) {
      Print(absl::StrCat("the run's folder, ", options_.run_dir, ", has the work up to ",
                         BeginningText(*progress), "; `satrap resume` continues from there"));
    }
    return kExitFailed;
  }

  // Writes the termination message of the container.
  void LeaveMessage(const std::string& text) {
    if (options_.termination_log.empty()) return;
    // Write into the existing file: the kubelet made it, so it must not be replaced.
    std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(options_.termination_log.c_str(), "w"),
                                               fclose);
    if (file != nullptr) fputs(text.c_str(), file.get());
  }

  // Tries several times, because the storage may be available again a moment later.
  absl::Status WithAttempts(const std::function<absl::Status()>& write) {
    absl::Status status = write();
    for (int attempt = 1; !status.ok() && attempt < kAttempts; ++attempt) {
      if (options_.wait(kAgainMs) != 0) break;
      status = write();
    }
    return status;
  }

  int Report(const JobConfig& job, const EndEntry& end, const RunProgress& progress) {
    // The coordinator's last answer may be from before the end. Only the loaders' counts are taken
    // from it.
    StatusAnswer status = status_;
    *status.mutable_result() = end.result();
    status.set_generation(progress.generation);
    status.clear_restarts();
    for (const Restart& restart : progress.restarts) *status.add_restarts() = restart;
    std::vector<std::string> problems;
    // Use the longer of the two times: another pod may have begun the story, and the log may have
    // been compacted since.
    const double own_seconds = static_cast<double>(MonotonicMs() - start_ms_) * 1e-3;
    const double seconds =
        std::max(own_seconds, SecondsOf(options_.run_dir, options_.submission).value_or(0));
    const RunReport report = ReportOf(job, status, seconds, of_data_.All(job), &problems);
    for (const std::string& problem : problems) Print("warning: " + problem);
    fputs(ReportText(report).c_str(), stdout);
    fflush(stdout);
    const absl::Status written = WriteReport(report, /*copy=*/"");
    if (!written.ok()) return Say(std::string(written.message()), kExitStartAgain);
    LeaveMessage(RunState_Name(FINISHED));
    return 0;
  }

  void Print(const std::string& message) { print_(absl::StrCat("satrap: ", message, "\n")); }

  int Say(const std::string& message, int code) {
    Print(message);
    return code;
  }

  const StoryOptions& options_;
  const std::function<void(const std::string& text)>& print_;
  const int64_t start_ms_;
  const RefusalWatch refusal_;
  ProgressLine progress_;
  std::unique_ptr<rpc::GrpcChannel> channel_;  // null: the last call has failed
  StatusAnswer status_;                        // the last one
  int64_t heard_ms_ = start_ms_;               // when it came
  uint64_t told_generation_ = 0;
  AbandonedCuts abandoned_;
  DataWarnings of_data_{/*since_begin=*/false};
  absl::optional<ProgressWarnings> of_progress_;
};

}  // namespace

int TellStory(const StoryOptions& options,
              const std::function<void(const std::string& text)>& print) {
  return Story(options, print).Tell();
}

}  // namespace satrap
