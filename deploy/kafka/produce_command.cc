#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/config/job_file.h"
#include "common/thread/clock.h"
#include "data_loader/kafka/produce.h"
#include "data_loader/kafka/produce_synthetic.h"
#include "deploy/kafka/commands.h"
#include "deploy/kafka/kafka_flags.h"
#include "deploy/report/progress_line.h"

namespace satrap {
namespace {

constexpr char kUsage[] =
    R"(usage: satrap produce FILE... --topic T --brokers HOST:PORT[,...] [FLAGS]
       satrap produce --synthetic JOB --topic T --brokers HOST:PORT[,...] [FLAGS]

Writes the lines of files (plain or compressed) to a Kafka topic, each once, and waits until the
brokers have them. The topic must exist: `satrap topics T --make N` makes one.
)";

struct ProduceFlags {
  ClusterFlags cluster;
  std::string topic;
  double rate = 0;  // 0, which a user cannot give: no limit
  std::string format = "lines";
  int lines_per_message = 1;
  std::string job;
  std::vector<std::string> sets;
  std::string key, time;
  std::string time_unit = "s";
  std::string separator = "\t";
  int partition = -1;  // -1, which a user cannot give, lets the client choose by the key
  std::string synthetic;
  std::string stream = "train";
  absl::optional<int64_t> records;
  std::string install_dir = ".";

  std::vector<Flag> Table() {
    std::vector<Flag> flags = {
        Required(TextFlag("topic", "T", "the topic that is written to", &topic)),
        NumberFlag("rate", "N", "lines a second (default: as many as the brokers take)", &rate,
                   1e-3, 1e9),
        ChoiceFlag("format", "lines|record",
                   R"(what a message holds: lines as they are, or one Record of each line
                      (docs/formats.md), which needs --job)",
                   &format),
        NumberFlag("lines_per_message", "N", "lines that a message holds (default: 1)",
                   &lines_per_message, 1, 1000000),
        TextFlag("job", "JOB",
                 R"(a job file, which describes the lines: needed for --format record, for names of
                    columns, and if files have header lines)",
                 &job),
        TextsFlag("set", "PATH=VALUE", "overrides a field of the job (repeat for another field)",
                  &sets),
        TextFlag("key", "COLUMN",
                 R"(the message's key, which chooses its partition: a column's name, or its number
                    from 1)",
                 &key),
        TextFlag("time", "COLUMN", "the message's time: a column with seconds since 1970", &time),
        ChoiceFlag("time_unit", "s|ms", "the unit of that column (default: s)", &time_unit),
        TextFlag("separator", "C", "the byte between columns, if there is no --job (default: tab)",
                 &separator),
        NumberFlag("partition", "P", "write to this partition only", &partition, 0, 1000000),
        TextFlag("synthetic", "JOB",
                 R"(instead of files: the synthetic click log of a job, as Records, to all
                    partitions in turn)",
                 &synthetic),
        ChoiceFlag("stream", "train|valid|test",
                   "which stream of the synthetic log (default: train)", &stream),
        NumberFlag("records", "N",
                   "records that are written (default: as many as the job has; 0: without end)",
                   &records, 0, int64_t{1000000000000000}),
        TextFlag("install_dir", "DIR", /*help=*/"", &install_dir),
    };
    for (Flag& flag : cluster.Table()) flags.push_back(std::move(flag));
    return flags;
  }
};

// Shows progress: on a terminal a line that is overwritten, elsewhere a new line every five
// seconds.
class Bar {
 public:
  bool Show(const ProduceProgress& progress) {
    const int64_t now_ms = MonotonicMs();
    const bool last = progress.fraction >= 1;
    if (now_ms < next_ms_ && !last) return true;
    // Print rarely to a log file, which keeps every line.
    next_ms_ = now_ms + (terminal_ ? 100 : 5000);
    const double seconds = std::max<double>(static_cast<double>(now_ms - begin_ms_) / 1000, 1e-3);
    constexpr size_t kCells = 30;
    const auto full = static_cast<size_t>(std::max(progress.fraction, 0.0) * kCells);
    // If the click log has no end, there is no fraction, and so no bar.
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
      // Shorten the line: if it wrapped, it could not be overwritten.
      const std::string line = FittedBar(bar, text, TerminalColumns(STDERR_FILENO));
      std::fprintf(stderr, "\r%s\033[K", line.c_str());
      open_ = true;
    } else {
      std::fprintf(stderr, "%s%s\n", bar.c_str(), text.c_str());
    }
    return true;
  }
  // Ends the bar's line, so that further output begins on a new one.
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

absl::StatusOr<JobConfig> JobOf(const ProduceFlags& flags, const std::string& job) {
  ASSIGN_OR_RETURN(const std::string path, FindJobFile(job, flags.install_dir));
  return LoadJob(path, flags.sets, flags.install_dir);
}

absl::StatusOr<ProduceOptions> OptionsOf(const ProduceFlags& flags,
                                         const std::vector<std::string>& files) {
  ProduceOptions options;
  ASSIGN_OR_RETURN(options.kafka, flags.cluster.Config());
  options.topic = flags.topic;
  options.files = files;
  if (options.files.empty()) return absl::InvalidArgumentError("no FILE is given");
  options.lines_per_second = flags.rate;
  options.message.lines_per_message = flags.lines_per_message;
  options.partition = flags.partition;
  if (flags.format == "record") options.message.format = MessageOptions::kRecord;
  options.message.time_unit_ms = flags.time_unit == "s" ? 1000 : 1;
  options.message.key_column = flags.key;
  options.message.time_column = flags.time;
  options.message.separator = flags.separator;
  if (options.message.separator.size() != 1) {
    return absl::InvalidArgumentError("--separator must be one byte");
  }
  if (!flags.job.empty()) {
    ASSIGN_OR_RETURN(options.job, JobOf(flags, flags.job));
  }
  return options;
}

uint64_t RecordsOf(const SyntheticFormat& format, Stream stream) {
  const int64_t records = stream == TRAIN_STREAM   ? format.train_samples()
                          : stream == VALID_STREAM ? format.valid_samples()
                                                   : format.test_samples();
  return static_cast<uint64_t>(records);
}

absl::StatusOr<SyntheticProduceOptions> SyntheticOptionsOf(const ProduceFlags& flags,
                                                           const std::vector<std::string>& files) {
  SyntheticProduceOptions options;
  ASSIGN_OR_RETURN(options.kafka, flags.cluster.Config());
  options.topic = flags.topic;
  if (!files.empty()) {
    return absl::InvalidArgumentError("either FILE or --synthetic is given, not both");
  }
  ASSIGN_OR_RETURN(const JobConfig job, JobOf(flags, flags.synthetic));
  if (!job.data().has_synthetic()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", flags.synthetic, " has no data.synthetic"));
  }
  options.format = job.data().synthetic();
  options.stream = flags.stream == "train"   ? TRAIN_STREAM
                   : flags.stream == "valid" ? VALID_STREAM
                                             : TEST_STREAM;
  options.records = flags.records.has_value() ? static_cast<uint64_t>(*flags.records)
                                              : RecordsOf(options.format, options.stream);
  options.records_per_second = flags.rate;
  return options;
}

int ProduceLog(const ProduceFlags& flags, const std::vector<std::string>& files) {
  const absl::StatusOr<SyntheticProduceOptions> options = SyntheticOptionsOf(flags, files);
  if (!options.ok()) return ExitWith(options.status(), kWrongArguments);
  Bar bar;
  // Each record is one line and one message. If the click log has no end, the fraction is -1.
  const absl::Status status = ProduceSynthetic(*options, [&](uint64_t records) {
    const double all = static_cast<double>(options->records);
    return bar.Show({records, records, all > 0 ? static_cast<double>(records) / all : -1});
  });
  // End the bar first, or the message of a failure would be written into its line.
  bar.End();
  return ExitWith(status, kFailed);
}

}  // namespace

int ProduceCommand(const std::vector<std::string>& args) {
  ProduceFlags flags;
  if (AsksForHelp(args)) {
    std::printf("%s\n%s", kUsage, FlagsHelp(flags.Table()).c_str());
    return 0;
  }
  const auto files = ParseFlags(args, flags.Table());
  if (!files.ok()) return ExitWith(files.status(), kWrongArguments);
  if (!flags.synthetic.empty()) return ProduceLog(flags, *files);
  const absl::StatusOr<ProduceOptions> options = OptionsOf(flags, *files);
  if (!options.ok()) return ExitWith(options.status(), kWrongArguments);
  Bar bar;
  const absl::Status status =
      Produce(*options, [&bar](const ProduceProgress& progress) { return bar.Show(progress); });
  bar.End();
  return ExitWith(status, kFailed);
}

}  // namespace satrap
