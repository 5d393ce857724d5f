// Measures how fast a loader turns a topic into batches, compared with the same records from a
// file. Starts a broker and writes a topic of one partition. In each round it parses the file (as
// bench parse), makes batches of the topic, and reads the topic's messages without using them. This
// process, with librdkafka's threads, is pinned to one core, and the broker to another one. Prints
// one JSON line; rates are of 10^6 bytes of text, medians over rounds:
//
//   file_mb_per_s          from the file, in the page cache
//   topic_mb_per_s         from the topic
//   ratio                  topic_mb_per_s / file_mb_per_s
//   start_s                from the opening of a client to its first batch, in seconds
//   busy                   processor time / wall time after the first batch: 1 if fetching causes
//                          no pauses
//   read_us_per_message    processor time of reading alone, in microseconds
//   broker_us_per_message  the broker's processor time meanwhile
//
// usage: topic_benchmark [--lines_per_message=N] [--queue_mib=N] [--rows=N] [--rounds=N]
//                                            1               16   4000000            3
//
// Each round opens a client anew. That is part of topic_mb_per_s, so fewer rows give a lower ratio.

#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/cpu_name.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/kafka/partition_reader.h"
#include "common/kafka/producer.h"
#include "common/testing/measure.h"
#include "common/thread/clock.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/kafka/topic_batch_maker.h"
#include "proto/benchmark.pb.h"
#include "tests/benchmark/parse_work.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

struct Options {
  int lines_per_message = 1;
  int queue_mib = 16;
  int rows = 4000000;
  int rounds = 3;

  std::vector<Flag> Table() {
    return {
        NumberFlag("lines_per_message", "N", "(default: 1)", &lines_per_message, 1),
        NumberFlag("queue_mib", "N", "of the client's queue (default: 16)", &queue_mib, 1),
        NumberFlag("rows", "N", "lines of the file and the topic (default: 4000000)", &rows, 1),
        NumberFlag("rounds", "N", "over both (default: 3)", &rounds, 1),
    };
  }
};

// Pins this thread, and all threads and processes that it starts later.
void PinTo(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  CHECK(sched_setaffinity(0, sizeof(cores), &cores) == 0) << "core " << core;
}

// The processor time of a process: fields 14 and 15 of its stat file, in ticks of 10 ms.
double CpuSecondsOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const std::vector<std::string> words = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  return (std::stod(words[11]) + std::stod(words[12])) / 100;
}

// Writes the lines of the file as messages of the topic's only partition, and returns their number.
int64_t WriteTopic(const KafkaBroker& broker, const std::string& topic, const std::string& path,
                   int lines_per_message) {
  auto producer = KafkaProducer::Create(broker.Config(topic));
  CHECK_OK(producer.status());
  std::ifstream file(path);
  std::string line, value;
  int64_t messages = 0;
  int lines = 0;
  const auto send = [&] {
    KafkaProducer::Message message;
    message.topic = topic;
    message.partition = 0;
    message.value = value;
    CHECK_OK((*producer)->Send(message));
    value.clear();
    lines = 0;
    ++messages;
  };
  while (std::getline(file, line)) {
    if (lines > 0) value += '\n';
    value += line;
    if (++lines == lines_per_message) send();
  }
  if (lines > 0) send();
  CHECK_OK((*producer)->Flush(absl::Seconds(120)));
  return messages;
}

// What a loader with one thread needs to make batches of a topic.
class TopicParser {
 public:
  TopicParser(const JobConfig& job, const std::string& topic, int64_t messages)
      : progress_(ReadProgress::Options()),
        stream_(std::make_shared<TopicStream>(job.data().kafka(), AccessToBrokers(Logger()))),
        feed_(std::make_shared<PartitionFeed>()) {
    TopicSplit split;
    split.partition.set_topic(topic);
    split.partition.set_start(0);
    split.partition.set_end(static_cast<uint64_t>(messages));
    stream_->progress.AddPartition(0, 0);
    feed_->Add(split);
    TopicBatchMakerOptions options;
    options.spec =
        std::make_shared<const StreamSpec>(job, TRAIN_STREAM, std::vector<Split>(), &progress_);
    options.stream = stream_;
    options.feed = feed_;
    maker_ = NewTopicBatchMaker(options);
  }
  // `first` is called after the first batch.
  int64_t ParseAll(uint32_t epoch, const std::function<void()>& first) {
    return MakeAllBatches(maker_.get(), 0, epoch, first);
  }

 private:
  ReadProgress progress_;
  std::shared_ptr<TopicStream> stream_;
  std::shared_ptr<PartitionFeed> feed_;
  std::unique_ptr<BatchMaker> maker_;
};

void ReadAll(const KafkaConfig& config, const std::string& topic, int64_t messages) {
  auto reader = PartitionReader::Open(config, {{{topic, 0}, 0}}, Logger());
  CHECK_OK(reader.status());
  MessageBatch batch;
  while ((*reader)->next_offset(0) < messages) {
    CHECK_OK((*reader)->Read(0, 1000, &batch));
    if (batch.empty()) (*reader)->Wait({0}, absl::Seconds(1));
  }
}

struct Rates {
  std::vector<double> file, topic, start, busy, read_us, broker_us;
};

void Measure(const KafkaBroker& broker, const std::string& topic, const std::string& path,
             const Options& options, int64_t messages, Rates* rates) {
  const double megabytes = static_cast<double>(std::filesystem::file_size(path)) * 1e-6;
  JobConfig file_job = ParseJob(ParseFormat::kCriteo);
  JobConfig topic_job = file_job;
  file_job.mutable_data()->add_train_files(path);
  KafkaConfig* kafka = topic_job.mutable_data()->mutable_kafka();
  *kafka = broker.Config(topic);
  kafka->set_queue_bytes(int64_t{options.queue_mib} << 20);
  if (options.lines_per_message > 1) kafka->set_format(KafkaConfig::LINES);

  ReadProgress progress{ReadProgress::Options()};
  const auto spec = StreamSpec::Make(file_job, TRAIN_STREAM, &progress);
  CHECK_OK(spec.status());
  const std::unique_ptr<BatchMaker> file = NewBatchMaker(*spec);
  TopicParser parser(topic_job, topic, messages);
  for (int round = 0; round <= options.rounds; ++round) {
    const auto epoch = static_cast<uint32_t>(round);
    const double file_seconds = WallSecondsOf([&] {
      CHECK(MakeAllBatches(file.get(), static_cast<uint32_t>((*spec)->splits.size()), epoch) ==
            options.rows);
    });
    const int64_t begin_us = MonotonicUs();
    int64_t first_us = 0;
    double first_cpu = 0;
    const int64_t samples = parser.ParseAll(epoch, [&] {
      first_us = MonotonicUs();
      first_cpu = ProcessCpuSeconds();
    });
    CHECK(samples == options.rows);
    const double topic_cpu = ProcessCpuSeconds() - first_cpu;
    const int64_t end_us = MonotonicUs();
    const double topic_seconds = static_cast<double>(end_us - begin_us) * 1e-6;
    const double parsing_seconds = static_cast<double>(end_us - first_us) * 1e-6;
    const double broker_start = CpuSecondsOf(broker.pid());
    const double read_start = ProcessCpuSeconds();
    ReadAll(*kafka, topic, messages);
    const double read_cpu = ProcessCpuSeconds() - read_start;
    const double broker_cpu = CpuSecondsOf(broker.pid()) - broker_start;
    if (round == 0) continue;  // warms caches and the broker up
    rates->file.push_back(megabytes / file_seconds);
    rates->topic.push_back(megabytes / topic_seconds);
    rates->start.push_back(topic_seconds - parsing_seconds);
    rates->busy.push_back(topic_cpu / parsing_seconds);
    rates->read_us.push_back(read_cpu / static_cast<double>(messages) * 1e6);
    rates->broker_us.push_back(broker_cpu / static_cast<double>(messages) * 1e6);
  }
}

int Run(const Options& options) {
  PinTo(1);
  const auto broker = KafkaBroker::Start();
  if (broker == nullptr) return 1;
  PinTo(0);
  const std::string topic = broker->NewTopic(1);
  const std::string path = broker->dir() + "/clicks.tsv";
  WriteClicks(path, ParseFormat::kCriteo, options.rows);
  const int64_t messages = WriteTopic(*broker, topic, path, options.lines_per_message);
  Rates rates;
  Measure(*broker, topic, path, options, messages, &rates);
  const double file = Median(rates.file);
  const double topic_rate = Median(rates.topic);
  TopicLine line;
  line.set_benchmark("kafka");
  line.set_lines_per_message(options.lines_per_message);
  line.set_queue_mib(options.queue_mib);
  line.set_messages(messages);
  line.set_file_mb_per_s(file);
  line.set_topic_mb_per_s(topic_rate);
  line.set_ratio(topic_rate / file);
  line.set_start_s(Median(rates.start));
  line.set_busy(Median(rates.busy));
  line.set_read_us_per_message(Median(rates.read_us));
  line.set_broker_us_per_message(Median(rates.broker_us));
  line.set_rounds(options.rounds);
  line.set_cpu(CpuName());
  PrintJson(line);
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::Options options;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: topic_benchmark [FLAGS]", options.Table());
  if (code.has_value()) return *code;
  return satrap::Run(options);
}
