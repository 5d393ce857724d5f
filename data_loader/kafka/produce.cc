#include "data_loader/kafka/produce.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/kafka/cluster.h"
#include "common/kafka/producer.h"
#include "data_loader/kafka/send_pace.h"
#include "data_loader/source/line_reader.h"
#include "data_loader/source/split_list.h"

namespace satrap {
namespace {

// The number of lines that are read between two checks of the clock.
constexpr uint64_t kLinesPerLook = 64;

// Makes one split of each file, with the file's size and compression.
absl::StatusOr<std::vector<Split>> WholeFiles(const ProduceOptions& options) {
  JobConfig job;
  // Use a format whose files are never cut into several splits.
  job.mutable_data()->mutable_csv()->set_multiline(true);
  for (const std::string& file : options.files) {
    // Check this here, because ListSplits would blame a field of the job, but the file is a
    // command-line argument.
    std::error_code error;
    if (!std::filesystem::is_regular_file(file, error) || access(file.c_str(), R_OK) != 0) {
      return absl::NotFoundError(absl::StrCat("'", file, "' is not a file that can be read"));
    }
    job.mutable_data()->add_train_files(GlobOf(file));
  }
  return ListSplits(job, TRAIN_STREAM);
}

class Sender {
 public:
  Sender(const ProduceOptions& options, KafkaProducer* producer, MessageMaker* maker)
      : options_(options), producer_(producer), maker_(maker), pace_(options.lines_per_second) {}

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
    pace_.WaitFor(progress.lines);
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

  const ProduceOptions& options_;
  KafkaProducer* const producer_;
  MessageMaker* const maker_;
  const SendPace pace_;
};

}  // namespace

absl::StatusOr<size_t> FindTopic(const KafkaConfig& kafka, const std::string& topic) {
  // Less than 15 s, because a command with a wrong address must end with its message within 15 s.
  constexpr absl::Duration kLimit = absl::Seconds(12);
  KafkaConfig config = kafka;
  config.add_topics(topic);
  ASSIGN_OR_RETURN(const auto cluster, KafkaCluster::Connect(config, kLimit));
  ASSIGN_OR_RETURN(const std::vector<KafkaPartition> partitions, cluster->Partitions(config));
  // Only the partitions' own brokers can answer this call. If one of them cannot be reached
  // although the brokers of `kafka` can, a producer would need minutes to notice.
  RETURN_IF_ERROR(cluster->Ranges(partitions).status());
  return partitions.size();
}

absl::Status Produce(const ProduceOptions& options,
                     const std::function<bool(const ProduceProgress&)>& show) {
  ASSIGN_OR_RETURN(const std::vector<Split> files, WholeFiles(options));
  ASSIGN_OR_RETURN(auto maker,
                   MessageMaker::Create(options.message,
                                        options.job.has_value() ? &options.job->data() : nullptr));
  RETURN_IF_ERROR(FindTopic(options.kafka, options.topic).status());
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
      // As in a loader, empty lines and comments may precede the header.
      if (header && parser->KindOf(line.text) == ParseResult::kRecord) {
        header = false;
        continue;
      }
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
