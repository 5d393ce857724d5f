// The command `demo --kafka`: starts a broker, writes the synthetic click log to a topic at a fixed
// rate, and trains from the topic at the same time.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/process_memory.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/endpoints.h"
#include "common/rpc/grpc_channel.h"
#include "common/thread/clock.h"
#include "data_loader/synthetic/bayes_auc.h"
#include "deploy/cli/bench/metrics_page.h"
#include "deploy/cli/command_flags.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_preparation.h"
#include "deploy/cli/kafka_demo/kafka_demo_broker.h"
#include "deploy/cli/kafka_demo/kafka_demo_job.h"
#include "deploy/cli/kafka_demo/kafka_demo_series.h"
#include "deploy/cli/run_job.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/report/run_report.h"
#include "deploy/story/run_result.h"

namespace satrap {
namespace {

constexpr char kJob[] = "kafka_demo";
constexpr char kLog[] = "demo";  // the job whose synthetic log is written
constexpr int64_t kLookMs = 2000;
// A short demo is measured more often, so that each half has enough measurements (looks).
constexpr double kLooksOfAShortDemo = 30;

// The topic has no end but must not fill the disk, so the broker deletes old messages. It still
// keeps the messages of some minutes, so a reader that lags by less loses none.
const char* const kBounds[] = {
    "log.segment.bytes=67108864",
    "log.retention.bytes=268435456",
    "log.retention.check.interval.ms=10000",
};

// Measures the run while it trains, and stops it when its time is over.
class Watch {
 public:
  Watch(KafkaDemoBroker* broker, std::string coordinator, double minutes)
      : broker_(broker),
        coordinator_(std::move(coordinator)),
        minutes_(minutes),
        look_ms_(minutes > 0
                     ? std::min(kLookMs, static_cast<int64_t>(minutes * 60e3 / kLooksOfAShortDemo))
                     : kLookMs) {}

  bool Look(const StatusAnswer& status) {
    problem_ = broker_->Problem();
    if (!problem_.empty()) return false;
    if (status.state() != RUNNING || status.train().step() == 0) return true;
    const int64_t now_ms = MonotonicMs();
    if (begin_ms_ == 0) begin_ms_ = now_ms;
    if (now_ms >= next_look_ms_) {
      next_look_ms_ = now_ms + look_ms_;
      Measure(status, now_ms);
    }
    const double seconds = static_cast<double>(now_ms - begin_ms_) * 1e-3;
    if (minutes_ > 0 && seconds >= minutes_ * 60) Stop(status);
    return true;
  }
  // The reason if this object has ended the run; empty otherwise.
  const std::string& problem() const { return problem_; }
  const KafkaDemoSeries& series() const { return series_; }

 private:
  void Measure(const StatusAnswer& status, int64_t now_ms) {
    KafkaDemoLook look;
    look.seconds = static_cast<double>(now_ms - begin_ms_) * 1e-3;
    look.samples = status.train().samples();
    if (status.topics().has_lag_messages()) look.lag_messages = status.topics().lag_messages();
    for (const RoleStatus& role : status.roles()) {
      const Member& member = role.member();
      const auto resident = ResidentBytes(static_cast<pid_t>(member.pid()));
      if (!resident.has_value()) continue;
      ProcessMemory& memory = look.memory[MemberName(member.role(), member.index())];
      memory.resident = *resident;
      if (member.role() == EMBEDDING_PS) memory.rows = RowBytes(member.metrics_address());
    }
    series_.Add(std::move(look));
  }
  // The bytes of a PS's tables; absent if its metrics cannot be read.
  static absl::optional<uint64_t> RowBytes(const std::string& metrics_address) {
    const auto page = ReadMetricsPage(metrics_address, kMetricsMs);
    if (!page.ok()) return absl::nullopt;
    const auto bytes = SumOfMetric(*page, "satrap_table_bytes");
    if (!bytes.has_value()) return absl::nullopt;
    return static_cast<uint64_t>(*bytes);
  }
  // Asks the run to stop, as `satrap stop` does. Asks again in the next generation if this one ends
  // before the run has stopped.
  void Stop(const StatusAnswer& status) {
    if (status.generation() == stopped_generation_) return;
    auto channel = rpc::GrpcChannel::Create(coordinator_, rpc::EndpointOptions());
    if (!channel.ok()) return;
    WishRequest request;
    request.set_kind(WishRequest::STOP);
    request.set_run_id(status.run_id());
    const auto wished = CoordinatorClient(channel->get(), Envelope(), kWishMs).Wish(request);
    if (wished.ok()) stopped_generation_ = status.generation();
  }

  static constexpr int64_t kWishMs = 2000;
  static constexpr int64_t kMetricsMs = 200;  // short, because the progress line waits for it
  KafkaDemoBroker* const broker_;
  const std::string coordinator_;
  const double minutes_;
  const int64_t look_ms_;
  std::string problem_;
  KafkaDemoSeries series_;
  int64_t begin_ms_ = 0;
  int64_t next_look_ms_ = 0;
  uint64_t stopped_generation_ = 0;
};

absl::StatusOr<std::unique_ptr<RunFolder>> MakeFolder(const RunFlags& flags) {
  if (!flags.run_dir.empty()) return RunFolder::CreateAt(flags.run_dir);
  return RunFolder::CreateUnder(kRunsDir, kJob, /*is_latest=*/true);
}

// Creates both topics, writes the whole test topic, and starts to write the train topic.
absl::Status WriteTopics(double rate, const JobConfig& job, uint64_t records,
                         KafkaDemoBroker* broker) {
  const std::string& train = job.data().kafka().topics(0);
  const std::string& test = job.data().test_kafka().topics(0);
  const std::string synthetic = absl::StrCat("--synthetic=", kLog);
  RETURN_IF_ERROR(broker->MakeTopic(test, 1));
  RETURN_IF_ERROR(broker->MakeTopic(train, kDemoPartitions));
  RETURN_IF_ERROR(broker->Produce({synthetic, "--stream=test", "--topic=" + test}));
  return broker->StartProducing({synthetic, "--topic=" + train, absl::StrCat("--records=", records),
                                 absl::StrCat("--rate=", rate)});
}

// The synthetic log's best possible AUC can be computed, but not from the job, which names only a
// topic.
void AddBayesAuc(const SyntheticFormat& log, JobRun* run) {
  if (!run->report.has_value() || !run->report->result.has_test()) return;
  run->report->bayes_auc = ComputeBayesAuc(log).of_test_labels;
  const absl::Status written = WriteReport(*run->report, /*copy=*/"");
  if (!written.ok()) run->report_written = written;
}

absl::StatusOr<int> RunDemo(const CommandCall& call) {
  DemoFlags flags;
  RETURN_IF_ERROR(ParseArguments(call, flags.Table()).status());
  const double rate = flags.rate.value_or(DemoFlags::kDefaultRate);
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(kJob, call.install_dir));
  ASSIGN_OR_RETURN(JobConfig job, PrepareJob(path, flags.run.sets, call.install_dir));
  ASSIGN_OR_RETURN(const std::string log_path, FindJobFile(kLog, call.install_dir));
  ASSIGN_OR_RETURN(const JobConfig log_job, LoadJob(log_path, {}, call.install_dir));
  const SyntheticFormat& log = log_job.data().synthetic();
  const bool endless = flags.minutes.has_value();
  const auto records = endless ? 0 : static_cast<uint64_t>(log.train_samples());
  ASSIGN_OR_RETURN(const std::unique_ptr<RunFolder> folder, MakeFolder(flags.run));
  job.set_run_dir(folder->path());

  fprintf(stderr, "satrap: starting a Kafka broker in %s/kafka\n", folder->path().c_str());
  std::vector<std::string> bounds;
  if (endless) bounds.assign(std::begin(kBounds), std::end(kBounds));
  ASSIGN_OR_RETURN(std::unique_ptr<KafkaDemoBroker> broker,
                   KafkaDemoBroker::Start(*folder, call.install_dir, bounds));
  RETURN_IF_ERROR(SetDemoTopics(broker->address(), records, &job));
  RETURN_IF_ERROR(WriteTopics(rate, job, records, broker.get()));
  fprintf(stderr, "satrap: writing %s records a second to the topic %s of %s\n",
          CountText(static_cast<uint64_t>(rate)).c_str(), job.data().kafka().topics(0).c_str(),
          broker->address().c_str());

  Watch watch(broker.get(), folder->SocketAddress("coordinator_0"), flags.minutes.value_or(0));
  absl::StatusOr<JobRun> run =
      RunJobIn(*folder, job, LaunchOptions(), flags.run,
               [&watch](const StatusAnswer& status, Launcher*) { return watch.Look(status); });
  if (!watch.problem().empty()) return absl::AbortedError(watch.problem());
  if (run.ok()) AddBayesAuc(log, &*run);
  const int code = ReportRun(run, flags.run);
  if (run.ok()) {
    printf("%s", watch.series().Text().c_str());
    fflush(stdout);
    fprintf(stderr,
            "satrap: the broker has ended; `%s/tests/kafka/broker %s/kafka` starts it again, with "
            "the same topics and address\n",
            call.install_dir.c_str(), folder->path().c_str());
  }
  return code;
}

}  // namespace

int KafkaDemoCommand(const CommandCall& call) {
  constexpr int kInterrupted = 130;
  const absl::StatusOr<int> code = RunDemo(call);
  if (code.ok()) return *code;
  PrintError(code.status());
  return absl::IsCancelled(code.status()) ? kInterrupted : 1;
}

}  // namespace satrap
