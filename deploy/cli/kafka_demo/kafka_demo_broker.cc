#include "deploy/cli/kafka_demo/kafka_demo_broker.h"

#include <poll.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/file/file_system.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr char kBrokerLog[] = "kafka_broker";
constexpr char kToolsLog[] = "kafka_tools";
constexpr char kProducerLog[] = "kafka_producer";
// The exit code of the broker's script if it lacks a program that it needs.
constexpr int kNotInstalled = 3;
constexpr int kPeriodMs = 50;
constexpr int kRetryMs = 200;
// Long enough for Java to start while a build uses the machine.
constexpr int64_t kStartMs = 120000;
constexpr int64_t kTopicMs = 60000;
constexpr int64_t kProduceMs = 300000;

// While an object of this class lives, the signals that ask to stop are blocked, so that the demo's
// folder and processes are cleaned up before this process ends.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // Waits a moment. CANCELLED if a signal came meanwhile.
  absl::Status Pause() {
    const timespec period = {0, kPeriodMs * 1000000L};
    const int signal = sigtimedwait(&signals_, nullptr, &period);
    if (signal < 0) return absl::OkStatus();
    return absl::CancelledError(absl::StrCat("stopped by ", strsignal(signal)));
  }

 private:
  sigset_t signals_;
  sigset_t before_;
};

// Kills the process and its children: the broker's script runs another program before it turns into
// the broker.
void End(ChildProcess* process) {
  if (!process->HasEnded()) kill(-process->pid(), SIGKILL);
  while (!process->HasEnded()) poll(nullptr, 0, 5);
}

// Describes the exit of a process that ended by itself, with the last error in its log.
std::string EndText(const std::string& name, const ChildProcess& process, const std::string& log) {
  const std::string error = LastErrorOf(log);
  return absl::StrCat(name, " ", DescribeExit(process.wait_status()),
                      error.empty() ? "" : absl::StrCat(": ", absl::StripPrefix(error, "error: ")),
                      " (", log, ")");
}

}  // namespace

KafkaDemoBroker::KafkaDemoBroker(const RunFolder& folder, std::string install_dir,
                                 ChildProcess broker)
    : folder_(folder), install_dir_(std::move(install_dir)), broker_(broker) {}

KafkaDemoBroker::~KafkaDemoBroker() {
  if (producer_.has_value()) End(&*producer_);
  End(&broker_);
}

absl::StatusOr<std::unique_ptr<KafkaDemoBroker>> KafkaDemoBroker::Start(
    const RunFolder& folder, const std::string& install_dir,
    const std::vector<std::string>& properties) {
  HeldSignals signals;
  const std::string dir = folder.path() + "/kafka";
  std::vector<std::string> args = {install_dir + "/tests/kafka/broker", dir};
  args.insert(args.end(), properties.begin(), properties.end());
  ASSIGN_OR_RETURN(const ChildProcess broker,
                   ChildProcess::Start(args, folder.LogPath(kBrokerLog)));
  std::unique_ptr<KafkaDemoBroker> self(new KafkaDemoBroker(folder, install_dir, broker));
  const int64_t deadline_ms = MonotonicMs() + kStartMs;
  for (;;) {
    const auto address = ReadFile(dir + "/bootstrap", DiskFileSystem());
    if (address.ok()) {
      self->address_ = std::string(absl::StripSuffix(*address, "\n"));
      return self;
    }
    if (self->broker_.HasEnded()) {
      const int status = self->broker_.wait_status();
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNotInstalled) {
        return absl::FailedPreconditionError(
            "there is no Kafka broker to start: run ./setup kafka, which fetches one");
      }
      return absl::AbortedError(
          EndText("the Kafka broker", self->broker_, folder.LogPath(kBrokerLog)));
    }
    if (MonotonicMs() > deadline_ms) {
      return absl::DeadlineExceededError(absl::StrCat("the Kafka broker did not start within ",
                                                      kStartMs / 1000, " s; its log is ", dir,
                                                      "/broker.log"));
    }
    RETURN_IF_ERROR(signals.Pause());
  }
}

std::vector<std::string> KafkaDemoBroker::Command(const std::vector<std::string>& args) const {
  std::vector<std::string> command = {"/proc/self/exe", "--install_dir=" + install_dir_};
  command.insert(command.end(), args.begin(), args.end());
  command.push_back("--brokers=" + address_);
  return command;
}

absl::Status KafkaDemoBroker::Run(const std::vector<std::string>& args, int64_t deadline_ms) {
  HeldSignals signals;
  const std::string log = folder_.LogPath(kToolsLog);
  ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::Start(Command(args), log));
  absl::Status status;
  while (status.ok() && !process.HasEnded()) {
    if (broker_.HasEnded()) {
      status = absl::AbortedError(Problem());
    } else if (MonotonicMs() > deadline_ms) {
      status = absl::DeadlineExceededError(
          absl::StrCat("satrap ", args[0], " did not end in time; its log is ", log));
    } else {
      status = signals.Pause();
    }
  }
  if (!status.ok()) {
    End(&process);
    return status;
  }
  if (process.wait_status() == 0) return absl::OkStatus();
  return absl::UnavailableError(EndText(absl::StrCat("satrap ", args[0]), process, log));
}

absl::Status KafkaDemoBroker::MakeTopic(const std::string& topic, int partitions) {
  const int64_t deadline_ms = MonotonicMs() + kTopicMs;
  for (;;) {
    const absl::Status made =
        Run({"topics", topic, absl::StrCat("--make=", partitions)}, deadline_ms);
    // Each attempt itself waits for a broker that is starting. But such a broker may also refuse
    // the call, so try again.
    if (!absl::IsUnavailable(made) || MonotonicMs() > deadline_ms) return made;
    poll(nullptr, 0, kRetryMs);
  }
}

absl::Status KafkaDemoBroker::Produce(const std::vector<std::string>& args) {
  std::vector<std::string> command = {"produce"};
  command.insert(command.end(), args.begin(), args.end());
  return Run(command, MonotonicMs() + kProduceMs);
}

absl::Status KafkaDemoBroker::StartProducing(const std::vector<std::string>& args) {
  std::vector<std::string> command = {"produce"};
  command.insert(command.end(), args.begin(), args.end());
  ASSIGN_OR_RETURN(producer_, ChildProcess::Start(Command(command), folder_.LogPath(kProducerLog)));
  return absl::OkStatus();
}

std::string KafkaDemoBroker::Problem() {
  if (broker_.HasEnded()) {
    return EndText("the Kafka broker", broker_, folder_.path() + "/kafka/broker.log");
  }
  if (!producer_.has_value() || !producer_->HasEnded() || producer_->wait_status() == 0) return "";
  return EndText("the producer", *producer_, folder_.LogPath(kProducerLog));
}

}  // namespace satrap
