#include "tests/kafka/kafka_broker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/kafka/cluster.h"
#include "common/kafka/producer.h"
#include "common/thread/clock.h"

namespace satrap {
namespace {

constexpr char kScript[] = "tests/kafka/broker";
// The script's exit code when something is not installed.
constexpr int kNotInstalled = 3;
// This is long enough for Java to start on a machine that is building at the same time.
constexpr int64_t kStartMs = 120000;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

}  // namespace

std::vector<int> FreePorts(size_t count) {
  FILE* const pipe = popen(absl::StrCat(kScript, " --ports ", count).c_str(), "r");
  CHECK(pipe != nullptr) << kScript;
  std::vector<int> ports;
  for (int port = 0; std::fscanf(pipe, "%d", &port) == 1;) ports.push_back(port);
  CHECK(pclose(pipe) == 0 && ports.size() == count) << "no ports are free";
  return ports;
}

std::unique_ptr<KafkaBroker> KafkaBroker::Start(const std::vector<std::string>& properties,
                                                const std::string& address) {
  std::unique_ptr<KafkaBroker> self(new KafkaBroker());
  std::string pattern = absl::StrCat(testing::TempDir(), "/kafka_XXXXXX");
  CHECK(mkdtemp(pattern.data()) != nullptr) << pattern;
  self->dir_ = pattern;
  self->properties_ = properties;
  self->address_ = address;
  if (!self->StartProcess()) {
    std::string why = ReadFile(self->dir_ + "/start.log");
    while (!why.empty() && why.back() == '\n') why.pop_back();
    std::fprintf(stderr, "skipped: %s\n", why.c_str());
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<KafkaAdmin>> admin = KafkaAdmin::Create(self->Config(""));
  CHECK(admin.ok()) << admin.status();
  self->admin_ = *std::move(admin);
  return self;
}

KafkaBroker::~KafkaBroker() {
  admin_.reset();
  Kill();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

KafkaConfig KafkaBroker::Config(const std::string& topic) const {
  KafkaConfig config;
  config.add_brokers(address_);
  if (!topic.empty()) config.add_topics(topic);
  return config;
}

bool KafkaBroker::StartProcess() {
  std::vector<std::string> args = {kScript, dir_};
  args.insert(args.end(), properties_.begin(), properties_.end());
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  const int log =
      open((dir_ + "/start.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  CHECK(log >= 0) << dir_;
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    // Between fork and exec only calls that are safe in a signal handler are allowed.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(126);
    dup2(log, 1);
    dup2(log, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(log);
  CHECK(pid_ > 0) << "cannot fork";
  const int64_t deadline_ms = MonotonicMs() + kStartMs;
  const std::string bootstrap = dir_ + "/bootstrap";
  for (;;) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      if (WIFEXITED(status) && WEXITSTATUS(status) == kNotInstalled) return false;
      CHECK(false) << "the broker ended: " << ReadFile(dir_ + "/start.log")
                   << ReadFile(dir_ + "/broker.log");
    }
    CHECK(MonotonicMs() < deadline_ms)
        << "the broker does not answer: " << ReadFile(dir_ + "/broker.log");
    const std::string chosen = ReadFile(bootstrap);
    if (address_.empty()) address_ = chosen.substr(0, chosen.find('\n'));
    if (chosen.empty()) {
      usleep(10000);  // the script has not chosen its ports yet
      continue;
    }
    // No pause is needed here: the query itself waits for the broker.
    if (KafkaCluster::Connect(Config(""), absl::Seconds(1)).ok()) return true;
  }
}

std::string KafkaBroker::NewTopic(int partitions,
                                  const std::map<std::string, std::string>& settings) {
  std::string topic = absl::StrCat("topic-", topics_++);
  MakeTopic(topic, partitions, settings);
  return topic;
}

void KafkaBroker::MakeTopic(const std::string& topic, int partitions,
                            const std::map<std::string, std::string>& settings) {
  const absl::Status status = admin_->CreateTopic(topic, partitions, settings);
  CHECK(status.ok()) << status;
  // The controller has confirmed the topic, but the broker itself learns of it a moment later.
  const auto cluster = KafkaCluster::Connect(Config(""));
  CHECK(cluster.ok()) << cluster.status();
  const int64_t deadline_ms = MonotonicMs() + kStartMs;
  while (!(*cluster)->Partitions(Config(topic)).ok()) CHECK(MonotonicMs() < deadline_ms) << topic;
}

void KafkaBroker::Produce(const KafkaPartition& partition, const std::vector<std::string>& values) {
  auto producer = KafkaProducer::Create(Config(partition.topic));
  CHECK(producer.ok()) << producer.status();
  for (const std::string& value : values) {
    KafkaProducer::Message message;
    message.topic = partition.topic;
    message.partition = partition.partition;
    message.value = value;
    const absl::Status status = (*producer)->Send(message);
    CHECK(status.ok()) << status;
  }
  const absl::Status status = (*producer)->Flush(absl::Seconds(60));
  CHECK(status.ok()) << status;
}

void KafkaBroker::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void KafkaBroker::Restart() { CHECK(StartProcess()) << "the broker is no longer installed"; }

}  // namespace satrap
