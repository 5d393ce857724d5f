// Faults of the log and of disks: disks that lose or forget something, and wrong entries that
// coordinators write.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/order_fingerprint.h"
#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"
#include "common/file/testing/forwarding_file_system.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

// Text that an entry contains, by the kind of the entry.
constexpr absl::string_view kCompacted = "compacted {";
constexpr absl::string_view kDropped = "dropped {";

bool IsInLog(const std::string& path) { return absl::StrContains(path, "/log/"); }

bool IsCoordinator(Role role) { return role == COORDINATOR; }
bool IsOther(Role role) { return role != COORDINATOR; }

// Plants the disk `Planted` into the processes of the roles for which `of` is true.
template <typename Planted, typename... Arguments>
DiskHook Disk(bool (*of)(Role), Arguments... arguments) {
  return [=](const Site& site, std::unique_ptr<FileSystem> disk) -> std::unique_ptr<FileSystem> {
    if (!of(site.role)) return disk;
    return std::make_unique<Planted>(std::move(disk), arguments...);
  };
}

// A disk whose files are never synced.
class UnsyncedDisk final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk()->Create(path);
    if (!file.ok()) return file;
    return std::make_unique<File>(*std::move(file));
  }

 private:
  class File final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    absl::Status Sync() override { return absl::OkStatus(); }
  };
};

using Forget = void (*)(google::protobuf::RepeatedPtrField<RunLogEntry>* entries);

void ForgetNewestCut(google::protobuf::RepeatedPtrField<RunLogEntry>* entries) {
  for (int i = entries->size() - 1; i >= 0; --i) {
    if (entries->Get(i).has_cut()) return entries->DeleteSubrange(i, 1);
  }
}

void ForgetJobs(google::protobuf::RepeatedPtrField<RunLogEntry>* entries) {
  for (RunLogEntry& entry : *entries) {
    if (entry.has_generation()) entry.mutable_generation()->clear_job();
  }
}

// Forgets some of the contents of a COMPACTED entry.
class ForgetfulLog final : public ForwardingFileSystem {
 public:
  ForgetfulLog(std::unique_ptr<FileSystem> disk, Forget forget)
      : ForwardingFileSystem(std::move(disk)), forget_(forget) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk()->Create(path);
    if (!file.ok() || !IsInLog(path)) return file;
    return std::make_unique<Draft>(*std::move(file), forget_);
  }

 private:
  class Draft final : public ForwardingFile {
   public:
    Draft(std::unique_ptr<WritableFile> file, Forget forget)
        : ForwardingFile(std::move(file)), forget_(forget) {}
    absl::Status Append(absl::string_view text) override {
      if (!absl::StrContains(text, kCompacted)) return ForwardingFile::Append(text);
      RunLogEntry entry;
      CHECK_OK(ParseText(text.substr(0, text.rfind("# crc32c")), "an entry", &entry));
      forget_(entry.mutable_compacted()->mutable_entries());
      return ForwardingFile::Append(CheckedText(entry));
    }

   private:
    const Forget forget_;
  };

  const Forget forget_;
};

// Links an entry under the next free number.
class LateLinks final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const absl::Status status = disk()->HardLink(from, to);
    if (!absl::IsAlreadyExists(status)) return status;
    const size_t slash = to.rfind('/') + 1;
    int64_t number = 0;
    CHECK(absl::SimpleAtoi(to.substr(slash), &number));
    return HardLink(from,
                    absl::StrCat(to.substr(0, slash), absl::Dec(number + 1, absl::kZeroPad8)));
  }
};

// Loses the entry that announces a dropped change, but reports success to the coordinator.
class DroppedLost final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const std::string text = ReadFile(from, disk()).value_or("");
    return absl::StrContains(text, kDropped) ? absl::OkStatus() : disk()->HardLink(from, to);
  }
};

// Makes the entry that has just been linked look like the newest.
class StaleLinkCounts final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const absl::Status status = disk()->HardLink(from, to);
    if (status.ok()) linked_ = to.substr(to.rfind('/') + 1);
    return status;
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    auto names = disk()->List(folder);
    if (!names.ok() || !IsInLog(folder + "/") || linked_.empty()) return names;
    // An entry's name is its number with a fixed number of digits, so names compare as numbers do.
    const auto is_above = [this](const std::string& name) {
      return name.size() == linked_.size() && name > linked_;
    };
    names->erase(std::remove_if(names->begin(), names->end(), is_above), names->end());
    linked_.clear();
    return names;
  }

 private:
  std::string linked_;  // the entry that was linked since the last List of the log
};

// As soon as a file of the log could not be opened because it was gone, this disk stops updating
// its list of the log: it returns the last list from before that again and again.
class ListsOnce final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    auto file = disk()->Open(path);
    if (IsInLog(path) && absl::IsNotFound(file.status())) is_gone_ = true;
    return file;
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    auto names = disk()->List(folder);
    if (!names.ok() || !IsInLog(folder + "/")) return names;
    if (!is_gone_) listed_ = *names;
    return listed_;
  }

 private:
  bool is_gone_ = false;
  std::vector<std::string> listed_;
};

// Does not sync the folder of a COMPACTED entry.
class CompactedNotSynced final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::Status HardLink(const std::string& from, const std::string& to) override {
    const std::string text = ReadFile(from, disk()).value_or("");
    const absl::Status status = disk()->HardLink(from, to);
    if (status.ok() && absl::StrContains(text, kCompacted)) has_compacted_ = true;
    return status;
  }
  absl::Status SyncFolder(const std::string& folder) override {
    return std::exchange(has_compacted_, false) ? absl::OkStatus() : disk()->SyncFolder(folder);
  }

 private:
  bool has_compacted_ = false;
};

class PinsIgnored final : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  absl::StatusOr<std::unique_ptr<FileLock>> TryLock(const std::string& path, LockKind) override {
    return disk()->TryLock(path, LockKind::kShared);
  }
};

// Answers CommitCut at once, but the coordinator gets the call up to 20 ms later. Rank 0 believes
// that the cut is committed. If the coordinator dies before it links the entry, the next generation
// begins from an older cut, and the acknowledged cut is lost.
class EarlyCommitAnswers final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == kCommitCut)) {
      return Pass(method, std::move(request), std::move(respond));
    }
    respond(DoneMessage());
    PassLate(20000, method, std::move(request), [](const auto&) {});
  }
};

constexpr uint64_t kLatestUs = 1000000;
constexpr uint64_t kLatestAfterEndUs = 1000;
constexpr uint64_t kWriter = 77;  // names drafts

bool IsEnd(RunState state) { return state != STARTING && state != RUNNING; }

// A coordinator that takes up to a second for each commit, and whose generation may end in the
// meantime. If the generation does not end, the engine commits. If members are told that it has
// ended, the entry is linked up to 1 ms later, under the number that was free when the commit came.
// The engine would have told them only after the commit.
class UnguardedCommits final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kCommitCut && !ended_) {
      return Hold(std::move(request), std::move(respond));
    }
    Pass(method, std::move(request),
         [this, method, respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
           if (answer.ok()) Look(method, *answer);
           respond(std::move(answer));
         });
  }

 private:
  struct Held {
    std::string cut;
    rpc::Message request;
    rpc::Callback respond;
  };

  // If `answer` tells a member that the generation has ended, links the commits that are held.
  void Look(const rpc::Method& method, const rpc::Message& answer) {
    HeartbeatAnswer heartbeat;
    FailAnswer fail;
    if (method == kHeartbeat && heartbeat.ParseFromString(answer.header)) {
      ended_ = ended_ || IsEnd(heartbeat.state());
    } else if (method == kFail && fail.ParseFromString(answer.header)) {
      ended_ = ended_ || IsEnd(fail.state());
    }
    if (!ended_) return;
    for (auto& [number, held] : std::exchange(held_, {})) {
      site_.loop->PostAfter(static_cast<int64_t>(site_.loop->random()->Below(kLatestAfterEndUs)),
                            [this, held = std::move(held)]() mutable {
                              if (Link(held.cut)) held.respond(DoneMessage());
                            });
    }
  }

  void Hold(rpc::Message request, rpc::Callback respond) {
    const auto commit = HeaderOf<CommitCutRequest>(request);
    const auto log = RunLog::Open(site_.run_dir, site_.disk, kWriter);
    if (log.ok()) logs_.emplace(commit.cut(), *log);
    const int64_t number = ++attempts_;
    held_[number] = {commit.cut(), std::move(request), std::move(respond)};
    site_.loop->PostAfter(static_cast<int64_t>(site_.loop->random()->Below(kLatestUs)),
                          [this, number] {
                            const auto held = held_.find(number);
                            if (held == held_.end()) return;  // an end came first
                            Held commit = std::move(held->second);
                            held_.erase(held);
                            Pass(kCommitCut, std::move(commit.request), std::move(commit.respond));
                          });
  }

  bool Link(const std::string& cut) {
    const auto log = logs_.find(cut);
    uint32_t crc32c = 0;
    const auto manifest = ReadManifest(FolderOfCut(site_.run_dir, cut), site_.disk, &crc32c);
    if (log == logs_.end() || !manifest.ok()) return false;
    RunLogEntry entry;
    entry.mutable_cut()->set_generation(manifest->generation());
    entry.mutable_cut()->set_cut(cut);
    entry.mutable_cut()->set_step(manifest->position().step());
    entry.mutable_cut()->set_order_fingerprint(manifest->order_fingerprint());
    entry.mutable_cut()->set_manifest_crc32c(crc32c);
    return log->second.Append(entry).ok();
  }

  bool ended_ = false;
  int64_t attempts_ = 0;
  std::map<int64_t, Held> held_;        // by attempt
  std::map<std::string, RunLog> logs_;  // by cut: as it was when the commit came
};

// A coordinator that tells members that the generation runs as soon as the last member is ready,
// whether or not the engine has decided so.
class EarlyRunning final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    RegisterRequest registration;
    HeartbeatRequest beat;
    if (method == kRegister) registration = HeaderOf<RegisterRequest>(request);
    if (method == kHeartbeat) beat = HeaderOf<HeartbeatRequest>(request);
    Pass(method, std::move(request),
         [this, method, registration = std::move(registration), is_ready = beat.ready(),
          from = MemberId(beat.role(), beat.index()),
          respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
           if (answer.ok() && method == kRegister) OnRegistered(registration.member(), *answer);
           if (answer.ok() && method == kFixSplits) {
             order_fingerprint_ =
                 OrderFingerprint(job_, HeaderOf<FixSplitsAnswer>(*answer).splits());
           }
           if (answer.ok() && method == kHeartbeat) {
             if (is_ready) ready_.insert(from);
             Hasten(&*answer);
           }
           respond(std::move(answer));
         });
  }

 private:
  using MemberId = std::pair<Role, uint32_t>;

  void OnRegistered(const Member& member, const rpc::Message& message) {
    const auto answer = HeaderOf<RegisterAnswer>(message);
    if (answer.wait()) return;
    job_ = answer.job();
    members_[MemberId(member.role(), member.index())] = member;
  }

  void Hasten(rpc::Message* message) const {
    auto answer = HeaderOf<HeartbeatAnswer>(*message);
    const int all = job_.data_loader().replicas() + job_.embedding_worker().replicas() +
                    job_.embedding_ps().replicas() + job_.nn_worker().replicas();
    if (answer.state() != STARTING || ready_.size() < static_cast<size_t>(all)) return;
    answer.set_state(RUNNING);
    answer.set_order_fingerprint(order_fingerprint_);
    for (const auto& [id, member] : members_) *answer.add_members() = member;
    message->header = answer.SerializeAsString();
  }

  JobConfig job_;
  uint64_t order_fingerprint_ = 0;
  std::map<MemberId, Member> members_;
  std::set<MemberId> ready_;
};

// If the newest generation has not run, and its job differs from that of the last generation that
// has run, writes into the log that this job is dropped. Does so whatever ended the newest
// generation.
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

}  // namespace

std::vector<Fault> LogFaults() {
  std::vector<Fault> faults = {
      {.says = "a cut is committed before its files are synced",
       .disk = Disk<UnsyncedDisk>(IsOther)},
      {.says = "an entry of the log is linked before it is synced",
       .disk = Disk<UnsyncedDisk>(IsCoordinator)},
      {.says = "a second coordinator goes on in the log", .disk = Disk<LateLinks>(IsCoordinator)},
      {.says = "a commit is answered before its entry is linked",
       .before_coordinator = Before<EarlyCommitAnswers>()},
      {.says = "a generation ends while a commit is under way",
       .before_coordinator = Before<UnguardedCommits>()},
      {.says = "an entry is taken for one of the log although a later one stands for its number",
       .disk = Disk<StaleLinkCounts>(IsCoordinator)},
      {.says = "a reader whose file of the log is gone does not list again",
       .disk = Disk<ListsOnce>(IsCoordinator)},
      {.says = "a compacted log has lost the cut that is needed next",
       .disk = Disk<ForgetfulLog>(IsCoordinator, ForgetNewestCut)},
      {.says = "a compacted log has lost the jobs of its cuts",
       .disk = Disk<ForgetfulLog>(IsCoordinator, ForgetJobs)},
      {.says = "files are removed before the entry that stands for them is durable",
       .disk = Disk<CompactedNotSynced>(IsCoordinator)},
      {.says = "members are told that a job runs before the log shows it",
       .before_coordinator = Before<EarlyRunning>()},
      {.says = "a death while a size begins undoes it", .before_claim = DropUnprovenChange},
      {.says = "a size that cannot begin is tried again and again",
       .disk = Disk<DroppedLost>(IsCoordinator)},
  };
  for (Fault& fault : faults) fault.with_deaths = true;
  faults.push_back({.says = "a cut that another command has pinned is removed",
                    .disk = Disk<PinsIgnored>(IsCoordinator)});
  return faults;
}

}  // namespace satrap::simulation
