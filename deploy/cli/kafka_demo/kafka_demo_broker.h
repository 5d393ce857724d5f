// The Kafka broker of `satrap demo --kafka` and the process that writes its topic. Both are
// separate programs with their files in the run's folder. They end when this object or this process
// ends.
//
//   RUN/kafka                        the broker's data and log; a broker started there again
//                                    (tests/kafka/broker RUN/kafka) has the same address
//   RUN/logs/kafka_broker.log, kafka_tools.log, kafka_producer.log
//
// Not thread-safe: only the main thread may use it.

#ifndef SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_BROKER_H_
#define SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_BROKER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "deploy/launcher/process/child_process.h"
#include "deploy/launcher/process/run_folder.h"

namespace satrap {

class KafkaDemoBroker {
 public:
  // Starts the broker and waits until it has chosen its address. `properties` ("NAME=VALUE")
  // override its settings. FAILED_PRECONDITION if Java or the jars are missing; ABORTED if the
  // broker ends; DEADLINE_EXCEEDED if it has no address after two minutes; CANCELLED, "stopped by
  // Interrupt", if a signal asks to stop. `folder` must outlive this object. REQUIRES: called on
  // the main thread, and no other thread exists
  static absl::StatusOr<std::unique_ptr<KafkaDemoBroker>> Start(
      const RunFolder& folder, const std::string& install_dir,
      const std::vector<std::string>& properties);
  // Ends the producer and the broker, and waits until both have ended.
  ~KafkaDemoBroker();

  const std::string& address() const { return address_; }  // HOST:PORT

  // Makes a topic. Retries for a minute while the broker is starting. UNAVAILABLE, with the last
  // error of `satrap topics`, if all attempts fail; DEADLINE_EXCEEDED if an attempt does not end
  // within that minute; ABORTED and CANCELLED as Start.
  absl::Status MakeTopic(const std::string& topic, int partitions);
  // Both methods run `satrap produce ARGS --brokers ...`. Produce waits until the process ends:
  // UNAVAILABLE, with the last error of the process, if it fails; DEADLINE_EXCEEDED if it does not
  // end within five minutes; ABORTED and CANCELLED as Start. StartProducing leaves the process in
  // the background and fails only if it cannot be started.
  absl::Status Produce(const std::vector<std::string>& args);
  absl::Status StartProducing(const std::vector<std::string>& args);

  // The reason why the run cannot continue: the broker has ended, or the producer has failed. Empty
  // if the run can continue.
  std::string Problem();
  pid_t pid() const { return broker_.pid(); }

 private:
  KafkaDemoBroker(const RunFolder& folder, std::string install_dir, ChildProcess broker);
  std::vector<std::string> Command(const std::vector<std::string>& args) const;
  // Runs this program with `args` and waits for its end.
  absl::Status Run(const std::vector<std::string>& args, int64_t deadline_ms);

  const RunFolder& folder_;
  const std::string install_dir_;
  ChildProcess broker_;
  absl::optional<ChildProcess> producer_;
  std::string address_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_KAFKA_DEMO_KAFKA_DEMO_BROKER_H_
