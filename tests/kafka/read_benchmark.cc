// How fast a PartitionReader reads, and what a message costs: starts a broker, writes a topic, and
// reads it several times.
//
//   read_benchmark [MESSAGES] [BYTES] [PARTITIONS] [QUEUE_MIB]     (4000000 230 1 16)
//
// Prints a line for each round: wall time, processor time of this process (librdkafka's threads
// included) and of the broker. Run it on an idle machine; `taskset` pins the processes.

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/kafka/partition_reader.h"
#include "common/kafka/producer.h"
#include "common/thread/clock.h"
#include "tests/kafka/kafka_broker.h"

namespace satrap {
namespace {

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double OwnCpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// Ticks of 10 ms, from the fields 14 and 15 of the process's stat file.
double CpuSecondsOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const std::vector<std::string> words = absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  return (std::stod(words[11]) + std::stod(words[12])) / 100;
}

void ReadAll(const KafkaBroker& broker, const std::string& topic, int partitions, int64_t each,
             int64_t queue_bytes) {
  KafkaConfig config = broker.Config("");
  config.set_queue_bytes(queue_bytes);
  std::vector<KafkaPlace> places;
  std::vector<size_t> indices;
  for (int p = 0; p < partitions; ++p) {
    places.push_back({{topic, p}, 0});
    indices.push_back(static_cast<size_t>(p));
  }
  const double begin = MonotonicSeconds();
  const double cpu = OwnCpuSeconds();
  const double broker_cpu = CpuSecondsOf(broker.pid());
  auto opened = PartitionReader::Open(config, places, Logger());
  CHECK(opened.ok()) << opened.status();
  PartitionReader& reader = **opened;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t sum = 0;
  uint64_t waits = 0;
  MessageBatch batch;
  int left = partitions;
  std::vector<bool> done(static_cast<size_t>(partitions), false);
  while (left > 0) {
    bool any = false;
    for (const size_t index : indices) {
      if (done[index]) continue;
      const absl::Status status = reader.Read(index, 1000, &batch);
      CHECK(status.ok()) << status;
      for (size_t i = 0; i < batch.size(); ++i) {
        bytes += batch.value(i).size();
        sum += static_cast<unsigned char>(batch.value(i)[0]);
      }
      messages += batch.size();
      any = any || !batch.empty();
      if (reader.next_offset(index) >= each) {
        done[index] = true;
        --left;
      }
    }
    if (!any && left > 0) {
      ++waits;
      reader.Wait(indices, absl::Seconds(1));
    }
  }
  batch.Clear();
  const double wall = MonotonicSeconds() - begin;
  const double own = OwnCpuSeconds() - cpu;
  const double m = static_cast<double>(messages);
  std::printf(
      "%.0f messages, %.0f MB: %.2f s wall, %.2f s CPU, broker %.2f s CPU; %.2f M messages/s, "
      "%.0f MB/s, %.3f core-us a message, %.0f waits, check %d\n",
      m, static_cast<double>(bytes) / 1e6, wall, own, CpuSecondsOf(broker.pid()) - broker_cpu,
      m / wall / 1e6, static_cast<double>(bytes) / wall / 1e6, own / m * 1e6,
      static_cast<double>(waits), static_cast<int>(sum % 10));
  std::fflush(stdout);
}

int Main(const std::vector<int64_t>& numbers) {
  const auto broker = KafkaBroker::Start();
  if (broker == nullptr) return 0;
  const int64_t messages = numbers[0];
  const std::string value(static_cast<size_t>(numbers[1]), 'x');
  const int partitions = static_cast<int>(numbers[2]);
  const std::string topic = broker->NewTopic(partitions);
  {
    auto producer = KafkaProducer::Create(broker->Config(topic));
    CHECK(producer.ok()) << producer.status();
    const double begin = MonotonicSeconds();
    for (int64_t i = 0; i < messages; ++i) {
      KafkaProducer::Message message;
      message.topic = topic;
      message.partition = static_cast<int32_t>(i % partitions);
      message.value = value;
      CHECK_OK((*producer)->Send(message));
    }
    CHECK_OK((*producer)->Flush(absl::Seconds(120)));
    std::printf("written in %.2f s\n", MonotonicSeconds() - begin);
  }
  for (int round = 0; round < 4; ++round) {
    ReadAll(*broker, topic, partitions, messages / partitions, numbers[3] << 20);
  }
  return 0;
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  std::vector<int64_t> numbers = {4000000, 230, 1, 16};
  for (int i = 1; i < argc && i <= 4; ++i)
    numbers[static_cast<size_t>(i - 1)] = std::atoll(argv[i]);
  return satrap::Main(numbers);
}
