#include "deploy/cli/kafka_demo/kafka_demo_job.h"

#include "common/config/job_config.h"
#include "common/config/validate/validate_job.h"
#include "data_loader/kafka/produce_synthetic.h"

namespace satrap {

absl::Status SetDemoTopics(const std::string& address, uint64_t records, JobConfig* job) {
  if (job->data().kafka().topics_size() != 1 || job->data().test_kafka().topics_size() != 1) {
    return absl::InvalidArgumentError(
        "the demo's job must train from one topic (data.kafka.topics) and test with another one "
        "(data.test_kafka.topics)");
  }
  ForgetInheritedSettings(job);
  KafkaConfig* const train = job->mutable_data()->mutable_kafka();
  train->clear_brokers();
  train->add_brokers(address);
  if (records > 0) {
    train->clear_end();
    for (int partition = 0; partition < kDemoPartitions; ++partition) {
      KafkaOffset* const end = train->mutable_end()->add_offsets();
      end->set_topic(train->topics(0));
      end->set_partition(partition);
      end->set_offset(
          static_cast<int64_t>(RecordsOfPartition(records, partition, kDemoPartitions)));
    }
  }
  ResolveJob(job);
  return ValidateJob(*job);
}

}  // namespace satrap
