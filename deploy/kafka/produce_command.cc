#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "common/thread/clock.h"
#include "data_loader/kafka/produce.h"
#include "data_loader/kafka/produce_synthetic.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/flags.h"
#include "deploy/report/progress_line.h"

namespace satrap {
namespace {

constexpr char kHelp[] =
    R"(usage: satrap produce FILE... --topic T --brokers HOST:PORT[,...] [FLAGS]
       satrap produce --synthetic JOB --topic T --brokers HOST:PORT[,...] [FLAGS]

Writes the lines of files (plain or compressed) to a Kafka topic, each once, and waits until the
brokers have them. The topic must exist: `satrap topics T --make N` makes one.

  --rate N                lines a second (default: as many as the brokers take)
  --format lines|record   what a message holds: lines as they are, or one Record of each line
                          (docs/formats.md), which needs --job
  --lines_per_message N   (default 1)
  --job JOB               a job file, which says what a line holds: for --format record, names of
                          columns, and header lines
  --set PATH=VALUE        overrides a field of the job
  --key COLUMN            the message's key, which chooses its partition: a column's name, or its
                          number from 1
  --time COLUMN           the message's time: a column with seconds since 1970
  --time_unit s|ms        what that column counts (default s)
  --separator C           between columns, where there is no --job (default: tab)
  --partition P           write to this partition only
  --synthetic JOB         instead of files: the synthetic click log of a job, as Records, to all
                          partitions in turn
  --stream train|valid|test   of the synthetic log (default train)
  --records N             of the synthetic log (default: as many as the job has; 0: without end)
  --setting NAME=VALUE    of librdkafka; secrets as NAME=file:PATH or NAME=env:NAME
)";

// A line on a terminal, which is overwritten in place; elsewhere a new line every five seconds.
class Bar {
 public:
  bool Show(const ProduceProgress& progress) {
    const int64_t now_ms = MonotonicMs();
    const bool last = progress.fraction >= 1;
    if (now_ms < next_ms_ && !last) return true;
    // A log file keeps every line, so it gets few.
    next_ms_ = now_ms + (terminal_ ? 100 : 5000);
    const double seconds = std::max<double>(static_cast<double>(now_ms - begin_ms_) / 1000, 1e-3);
    constexpr size_t kCells = 30;
    const auto full = static_cast<size_t>(std::max(progress.fraction, 0.0) * kCells);
    // A click log without an end has no bar.
    const std::string bar = progress.fraction < 0
                                ? ""
                                : absl::StrFormat("[%s%s] %3.0f%%  ", std::string(full, '='),
                                                  std::string(kCells - std::min(full, kCells), ' '),
                                                  progress.fraction * 100);
    const std::string text = absl::StrFormat(
        "%s, %s, %.0f lines/s", Counted(static_cast<uint64_t>(progress.lines), "line"),
        Counted(static_cast<uint64_t>(progress.messages), "message"),
        static_cast<double>(progress.lines) / seconds);
    if (terminal_) {
      // A line that wraps cannot be overwritten.
      const std::string line = FittedBar(bar, text, TerminalColumns(STDERR_FILENO));
      std::fprintf(stderr, "\r%s\033[K", line.c_str());
      open_ = true;
    } else {
      std::fprintf(stderr, "%s%s\n", bar.c_str(), text.c_str());
    }
    return true;
  }
  // Makes what follows begin on a new line.
  void End() {
    if (open_) std::fputc('\n', stderr);
    open_ = false;
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  const int64_t begin_ms_ = MonotonicMs();
  int64_t next_ms_ = 0;
  bool open_ = false;
};

absl::StatusOr<JobConfig> JobOf(const KafkaFlags& flags, const std::string& job) {
  const std::string install_dir = flags.Get("install_dir", ".");
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(job, install_dir));
  std::vector<std::string> sets;
  if (const std::string set = flags.Get("set"); !set.empty()) sets.push_back(set);
  return LoadJob(path, sets, install_dir);
}

absl::StatusOr<ProduceOptions> OptionsOf(const KafkaFlags& flags) {
  ProduceOptions options;
  ASSIGN_OR_RETURN(options.kafka, KafkaConfigOf(flags));
  ASSIGN_OR_RETURN(options.topic, TopicOf(flags));
  options.files = flags.arguments;
  if (options.files.empty()) return absl::InvalidArgumentError("no FILE is given");
  ASSIGN_OR_RETURN(options.lines_per_second, flags.Number("rate", 0, 1e-3, 1e9));
  ASSIGN_OR_RETURN(const double lines, flags.Number("lines_per_message", 1, 1, 1e6));
  options.message.lines_per_message = static_cast<int>(lines);
  // The default -1, which a user cannot give, lets the client choose by the key.
  ASSIGN_OR_RETURN(const double partition, flags.Number("partition", -1, 0, 1e6));
  options.partition = static_cast<int32_t>(partition);
  const std::string format = flags.Get("format", "lines");
  if (format != "lines" && format != "record") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format must be lines or record, got ", format));
  }
  if (format == "record") options.message.format = MessageOptions::kRecord;
  const std::string unit = flags.Get("time_unit", "s");
  if (unit != "s" && unit != "ms") {
    return absl::InvalidArgumentError(absl::StrCat("--time_unit must be s or ms, got ", unit));
  }
  options.message.time_unit_ms = unit == "s" ? 1000 : 1;
  options.message.key_column = flags.Get("key");
  options.message.time_column = flags.Get("time");
  options.message.separator = flags.Get("separator", "\t");
  if (options.message.separator.size() != 1) {
    return absl::InvalidArgumentError("--separator must be one byte");
  }
  if (const std::string job = flags.Get("job"); !job.empty()) {
    ASSIGN_OR_RETURN(options.job, JobOf(flags, job));
  }
  return options;
}

absl::StatusOr<Stream> StreamOf(const std::string& name) {
  if (name == "train") return TRAIN_STREAM;
  if (name == "valid") return VALID_STREAM;
  if (name == "test") return TEST_STREAM;
  return absl::InvalidArgumentError(
      absl::StrCat("--stream must be train, valid or test, got ", name));
}

uint64_t RecordsOf(const SyntheticFormat& format, Stream stream) {
  const int64_t records = stream == TRAIN_STREAM   ? format.train_samples()
                          : stream == VALID_STREAM ? format.valid_samples()
                                                   : format.test_samples();
  return static_cast<uint64_t>(records);
}

absl::StatusOr<SyntheticProduceOptions> SyntheticOptionsOf(const KafkaFlags& flags) {
  SyntheticProduceOptions options;
  ASSIGN_OR_RETURN(options.kafka, KafkaConfigOf(flags));
  ASSIGN_OR_RETURN(options.topic, TopicOf(flags));
  if (!flags.arguments.empty()) {
    return absl::InvalidArgumentError("either FILE or --synthetic is given, not both");
  }
  ASSIGN_OR_RETURN(const JobConfig job, JobOf(flags, flags.Get("synthetic")));
  if (!job.data().has_synthetic()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", flags.Get("synthetic"), " has no data.synthetic"));
  }
  options.format = job.data().synthetic();
  ASSIGN_OR_RETURN(options.stream, StreamOf(flags.Get("stream", "train")));
  ASSIGN_OR_RETURN(
      const double records,
      flags.Number("records", static_cast<double>(RecordsOf(options.format, options.stream)), 0,
                   1e15));
  options.records = static_cast<uint64_t>(records);
  // The default 0, which a user cannot give, means no limit.
  ASSIGN_OR_RETURN(options.records_per_second, flags.Number("rate", 0, 1e-3, 1e9));
  return options;
}

int ProduceLog(const KafkaFlags& flags) {
  const absl::StatusOr<SyntheticProduceOptions> options = SyntheticOptionsOf(flags);
  if (!options.ok()) return ExitWith(options.status(), kWrongArguments);
  Bar bar;
  // A record is one line and one message. A click log without an end has no fraction.
  const absl::Status status = ProduceSynthetic(*options, [&](uint64_t records) {
    const double all = static_cast<double>(options->records);
    return bar.Show({records, records, all > 0 ? static_cast<double>(records) / all : -1});
  });
  // Ends the bar before the message of a failure, which would otherwise be written into it.
  bar.End();
  return ExitWith(status, kFailed);
}

}  // namespace

int ProduceCommand(const std::vector<std::string>& args) {
  const absl::StatusOr<KafkaFlags> flags = ParseKafkaFlags(
      args, {"topic", "rate", "format", "lines_per_message", "job", "set", "install_dir", "key",
             "time", "time_unit", "separator", "partition", "synthetic", "stream", "records"});
  if (flags.ok() && flags->help) {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (!flags.ok()) return ExitWith(flags.status(), kWrongArguments);
  if (!flags->Get("synthetic").empty()) return ProduceLog(*flags);
  const absl::StatusOr<ProduceOptions> options = OptionsOf(*flags);
  if (!options.ok()) return ExitWith(options.status(), kWrongArguments);
  Bar bar;
  const absl::Status status =
      Produce(*options, [&bar](const ProduceProgress& progress) { return bar.Show(progress); });
  bar.End();
  return ExitWith(status, kFailed);
}

}  // namespace satrap
