#include "tests/simulation/plants/sim_plants_commits.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/checkpoint/job_of_run.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

constexpr uint64_t kLatestUs = 1000000;
constexpr uint64_t kLatestAfterEndUs = 1000;
constexpr uint64_t kWriter = 77;  // names drafts

constexpr absl::string_view kCommitPath = "/satrap.Coordinator/CommitCut";
constexpr absl::string_view kHeartbeatPath = "/satrap.Coordinator/Heartbeat";
constexpr absl::string_view kRegisterPath = "/satrap.Coordinator/Register";
constexpr absl::string_view kFixSplitsPath = "/satrap.Coordinator/FixSplits";
constexpr absl::string_view kFailPath = "/satrap.Coordinator/Fail";

bool IsEnd(RunState state) { return state != STARTING && state != RUNNING; }

class UnguardedCommits final : public rpc::Handler {
 public:
  UnguardedCommits(rpc::Handler* coordinator, std::string run_dir, FileSystem* disk, SimLoop* loop)
      : coordinator_(coordinator), run_dir_(std::move(run_dir)), disk_(disk), loop_(loop) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (absl::string_view(method.path) == kCommitPath && !ended_) {
      return Hold(method, std::move(request), std::move(respond));
    }
    coordinator_->Handle(
        method, std::move(request),
        [this, path = absl::string_view(method.path),
         respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
          if (answer.ok()) Look(path, *answer);
          respond(std::move(answer));
        });
  }

 private:
  struct Held {
    std::string cut;
    rpc::Message request;
    rpc::Callback respond;
  };

  // If `answer` tells a member of the end, links the commits that are held.
  void Look(absl::string_view path, const rpc::Message& answer) {
    HeartbeatAnswer heartbeat;
    FailAnswer fail;
    if (path == kHeartbeatPath && heartbeat.ParseFromString(answer.header)) {
      ended_ = ended_ || IsEnd(heartbeat.state());
    } else if (path == kFailPath && fail.ParseFromString(answer.header)) {
      ended_ = ended_ || IsEnd(fail.state());
    }
    if (!ended_) return;
    for (auto& [number, held] : std::exchange(held_, {})) {
      loop_->PostAfter(static_cast<int64_t>(loop_->random()->Below(kLatestAfterEndUs)),
                       [this, held = std::move(held)]() mutable {
                         if (Link(held.cut)) held.respond(DoneMessage());
                       });
    }
  }

  void Hold(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
    CommitCutRequest commit;
    CHECK(commit.ParseFromString(request.header));
    const auto log = RunLog::Open(run_dir_, disk_, kWriter);
    if (log.ok()) logs_.emplace(commit.cut(), *log);
    const int64_t number = ++attempts_;
    held_[number] = {commit.cut(), std::move(request), std::move(respond)};
    loop_->PostAfter(
        static_cast<int64_t>(loop_->random()->Below(kLatestUs)), [this, method, number] {
          const auto held = held_.find(number);
          if (held == held_.end()) return;  // an end came first
          Held commit = std::move(held->second);
          held_.erase(held);
          coordinator_->Handle(method, std::move(commit.request), std::move(commit.respond));
        });
  }

  bool Link(const std::string& cut) {
    const auto log = logs_.find(cut);
    uint32_t crc32c = 0;
    const auto manifest = ReadManifest(FolderOfCut(run_dir_, cut), disk_, &crc32c);
    if (log == logs_.end() || !manifest.ok()) return false;
    RunLogEntry entry;
    entry.mutable_cut()->set_generation(manifest->generation());
    entry.mutable_cut()->set_cut(cut);
    entry.mutable_cut()->set_step(manifest->position().step());
    entry.mutable_cut()->set_order_fingerprint(manifest->order_fingerprint());
    entry.mutable_cut()->set_manifest_crc32c(crc32c);
    return log->second.Append(entry).ok();
  }

  rpc::Handler* const coordinator_;
  const std::string run_dir_;
  FileSystem* const disk_;
  SimLoop* const loop_;
  bool ended_ = false;
  int64_t attempts_ = 0;
  std::map<int64_t, Held> held_;        // by attempt
  std::map<std::string, RunLog> logs_;  // by cut: as it was when the commit came
};

class EarlyRunning final : public rpc::Handler {
 public:
  explicit EarlyRunning(rpc::Handler* coordinator) : coordinator_(coordinator) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    const absl::string_view path = method.path;
    RegisterRequest registration;
    HeartbeatRequest beat;
    if (path == kRegisterPath) CHECK(registration.ParseFromString(request.header));
    if (path == kHeartbeatPath) CHECK(beat.ParseFromString(request.header));
    coordinator_->Handle(
        method, std::move(request),
        [this, path, registration = std::move(registration), is_ready = beat.ready(),
         from = MemberId(beat.role(), beat.index()),
         respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
          if (answer.ok() && path == kRegisterPath) OnRegistered(registration.member(), *answer);
          if (answer.ok() && path == kFixSplitsPath) OnFixed(*answer);
          if (answer.ok() && path == kHeartbeatPath) {
            if (is_ready) ready_.insert(from);
            Hasten(&*answer);
          }
          respond(std::move(answer));
        });
  }

 private:
  using MemberId = std::pair<Role, uint32_t>;

  void OnRegistered(const Member& member, const rpc::Message& message) {
    RegisterAnswer answer;
    CHECK(answer.ParseFromString(message.header));
    if (answer.wait()) return;
    job_ = answer.job();
    members_[MemberId(member.role(), member.index())] = member;
  }

  void OnFixed(const rpc::Message& message) {
    FixSplitsAnswer answer;
    CHECK(answer.ParseFromString(message.header));
    order_fingerprint_ = OrderFingerprint(job_, answer.splits());
  }

  void Hasten(rpc::Message* message) const {
    HeartbeatAnswer answer;
    CHECK(answer.ParseFromString(message->header));
    const int all = job_.data_loader().replicas() + job_.embedding_worker().replicas() +
                    job_.embedding_ps().replicas() + job_.nn_worker().replicas();
    if (answer.state() != STARTING || ready_.size() < static_cast<size_t>(all)) return;
    answer.set_state(RUNNING);
    answer.set_order_fingerprint(order_fingerprint_);
    for (const auto& [id, member] : members_) *answer.add_members() = member;
    message->header = answer.SerializeAsString();
  }

  rpc::Handler* const coordinator_;
  JobConfig job_;
  uint64_t order_fingerprint_ = 0;
  std::map<MemberId, Member> members_;
  std::set<MemberId> ready_;
};

}  // namespace

std::unique_ptr<rpc::Handler> NewUnguardedCommits(rpc::Handler* coordinator,
                                                  const std::string& run_dir, FileSystem* disk,
                                                  SimLoop* loop) {
  return std::make_unique<UnguardedCommits>(coordinator, run_dir, disk, loop);
}

std::unique_ptr<rpc::Handler> NewEarlyRunning(rpc::Handler* coordinator) {
  return std::make_unique<EarlyRunning>(coordinator);
}

void DropUnprovenChange(const std::string& run_dir, FileSystem* disk) {
  auto log = RunLog::Open(run_dir, disk, kWriter);
  if (!log.ok() || log->last_generation() == nullptr || log->end() != nullptr) return;
  const GenerationEntry& newest = *log->last_generation();
  if (newest.began() == BEGAN_SCALE_ANNOUNCED || DroppedChange(log->entries()) != nullptr ||
      JobToGoBackTo(log->entries(), newest.job()) == nullptr) {
    return;
  }
  RunLogEntry entry;
  entry.mutable_dropped()->set_generation(newest.generation());
  log->Append(entry).IgnoreError();
}

}  // namespace satrap::simulation
