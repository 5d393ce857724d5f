#include "data_loader/kafka/produce.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/kafka/cluster.h"
#include "common/kafka/producer.h"
#include "common/thread/clock.h"
#include "data_loader/source/line_reader.h"
#include "data_loader/source/split_list.h"

namespace satrap {
namespace {

constexpr absl::Duration kFlushLimit = absl::Seconds(60);
// How many lines are read between two looks at the clock.
constexpr uint64_t kLinesPerLook = 64;

// The files as one split each, with their sizes and how they are compressed.
absl::StatusOr<std::vector<Split>> WholeFiles(const ProduceOptions& options) {
  JobConfig job;
  // A format of which a file is never cut.
  job.mutable_data()->mutable_csv()->set_multiline(true);
  for (const std::string& file : options.files) {
    job.mutable_data()->add_train_files(GlobOf(file));
  }
  return ListSplits(job, TRAIN_STREAM);
}

class Sender {
 public:
  Sender(const ProduceOptions& options, KafkaProducer* producer, MessageMaker* maker)
      : options_(options), producer_(producer), maker_(maker), begin_us_(MonotonicUs()) {}

  absl::Status Add(absl::string_view line) {
    MessageMaker::Message message;
    ASSIGN_OR_RETURN(const bool full, maker_->Add(line, &message));
    return full ? Send(message) : absl::OkStatus();
  }
  absl::Status Finish() {
    MessageMaker::Message message;
    if (maker_->Finish(&message)) RETURN_IF_ERROR(Send(message));
    return producer_->Flush(kFlushLimit);
  }
  ProduceProgress progress;

 private:
  absl::Status Send(const MessageMaker::Message& message) {
    Pace();
    KafkaProducer::Message out;
    out.topic = options_.topic;
    out.partition = options_.partition;
    out.value = message.value;
    if (message.key.has_value()) out.key = *message.key;
    out.time_ms = message.time_ms;
    RETURN_IF_ERROR(producer_->Send(out));
    progress.lines += message.lines;
    ++progress.messages;
    return absl::OkStatus();
  }
  // Waits until the next message is due: the n-th line n / rate after the begin, so that a pause of
  // the broker is made up for.
  void Pace() const {
    if (options_.lines_per_second <= 0) return;
    const double due_us = static_cast<double>(progress.lines) / options_.lines_per_second * 1e6;
    const int64_t wait_us = begin_us_ + static_cast<int64_t>(due_us) - MonotonicUs();
    if (wait_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
  }

  const ProduceOptions& options_;
  KafkaProducer* const producer_;
  MessageMaker* const maker_;
  const int64_t begin_us_;
};

}  // namespace

absl::Status Produce(const ProduceOptions& options,
                     const std::function<bool(const ProduceProgress&)>& show) {
  ASSIGN_OR_RETURN(const std::vector<Split> files, WholeFiles(options));
  ASSIGN_OR_RETURN(auto maker,
                   MessageMaker::Create(options.message,
                                        options.job.has_value() ? &options.job->data() : nullptr));
  {
    // A producer would only find out after minutes that nobody is there.
    KafkaConfig topic = options.kafka;
    topic.add_topics(options.topic);
    ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(topic));
    RETURN_IF_ERROR(cluster->Partitions(topic).status());
  }
  ASSIGN_OR_RETURN(auto producer, KafkaProducer::Create(options.kafka));
  double total_bytes = 0;
  for (const Split& file : files) total_bytes += static_cast<double>(file.file_bytes);
  double done_bytes = 0;
  Sender sender(options, producer.get(), maker.get());
  const Parser* const parser = maker->parser();
  uint64_t since_look = 0;
  for (const Split& file : files) {
    ASSIGN_OR_RETURN(auto reader, LineReader::Open(file, parser == nullptr ? absl::nullopt
                                                                           : parser->multiline()));
    LineReader::Line line;
    bool header = parser != nullptr && parser->has_header();
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(&line));
      if (!more) break;
      if (std::exchange(header, false)) continue;
      if (absl::Status status = sender.Add(line.text); !status.ok()) {
        return absl::Status(status.code(),
                            absl::StrCat(file.path, ":", line.number, ": ", status.message()));
      }
      if (++since_look < kLinesPerLook && options.lines_per_second <= 0) continue;
      since_look = 0;
      sender.progress.fraction =
          (done_bytes + static_cast<double>(reader->disk_bytes())) / std::max(total_bytes, 1.0);
      if (!show(sender.progress)) return sender.Finish();
    }
    done_bytes += static_cast<double>(file.file_bytes);
  }
  RETURN_IF_ERROR(sender.Finish());
  sender.progress.fraction = 1;
  show(sender.progress);
  return absl::OkStatus();
}

}  // namespace satrap
