// Faults of the run's end, of its submissions, and of processes that leave their machines.

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checked_text.h"
#include "common/checkpoint/entries/run_end.h"
#include "common/checkpoint/run_log.h"
#include "common/config/text_format.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/rpc/header.h"
#include "proto/control.pb.h"
#include "proto/run_log.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

constexpr uint64_t kWriter = 78;  // names drafts

// Claims a generation of the log's submission, as if the coordinator did not know of an end.
void BeginAgain(RunLog* log) {
  const GenerationEntry& newest = *log->last_generation();
  RunLogEntry entry;
  GenerationEntry* next = entry.mutable_generation();
  *next = newest;
  next->set_generation(newest.generation() + 1);
  next->set_cut(log->next_start());
  next->set_began(BEGAN_RESTART);
  log->Append(entry).IgnoreError();
}

void IgnoreEnd(const std::string& run_dir, FileSystem* disk) {
  auto log = RunLog::Open(run_dir, disk, kWriter);
  if (log.ok() && log->end() != nullptr && !HasFinished(log->entries())) BeginAgain(&*log);
}

void IgnoreCutOfStop(const std::string& run_dir, FileSystem* disk) {
  auto log = RunLog::Open(run_dir, disk, kWriter);
  if (log.ok() && LeftFor(log->entries(), CutEntry::STOP) != nullptr) BeginAgain(&*log);
}

void ResumeOnceMore(const RunLog& log, bool, ClaimRequest* request) {
  const uint64_t newest = SubmissionOf(log.entries());
  if (newest > 1 && request->submission == newest) ++request->submission;
}

void TakeRunBack(const RunLog& log, bool is_stale, ClaimRequest* request) {
  if (is_stale) request->submission = SubmissionOf(log.entries());
}

void CallMoveRestart(const RunLog&, bool, ClaimRequest* request) {
  if (request->ended.why() == Ending::MOVED) request->ended.clear_why();
}

void CallFailureMove(const RunLog&, bool, ClaimRequest* request) {
  request->ended.set_why(Ending::MOVED);
}

// Tells members that the run has stopped as soon as rank 0 asks for the commit of the cut with
// which the ranks leave the generation.
class EarlyEnds final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kCommitCut) leaves_ |= HeaderOf<CommitCutRequest>(request).leave();
    if (!(method == kHeartbeat) || !leaves_) {
      return Pass(method, std::move(request), std::move(respond));
    }
    Pass(method, std::move(request),
         [respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
           if (answer.ok()) {
             EditHeader<HeartbeatAnswer>(&*answer, [](HeartbeatAnswer* told) {
               if (told->state() == RUNNING) told->set_state(STOPPED);
             });
           }
           respond(std::move(answer));
         });
  }

 private:
  bool leaves_ = false;
};

// Treats the message of a member that it leaves its machine as a wish to stop.
class MovesThatStop final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kHeartbeat && HeaderOf<HeartbeatRequest>(request).leaving()) {
      WishRequest stop;
      stop.set_kind(WishRequest::STOP);
      Pass(kWish, rpc::MessageOf(stop), [](const auto&) {});
      EditHeader<HeartbeatRequest>(&request, [](HeartbeatRequest* beat) { beat->clear_leaving(); });
    }
    Pass(method, std::move(request), std::move(respond));
  }
};

// Obeys every heartbeat that says that the process of a role and index leaves, whichever generation
// it comes from.
class MovesOfAnybody final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kRegister) {
      const auto registration = HeaderOf<RegisterRequest>(request);
      members_[{registration.member().role(), registration.member().index()}] =
          registration.incarnation();
    } else if (method == kHeartbeat) {
      EditHeader<HeartbeatRequest>(&request, [this](HeartbeatRequest* beat) {
        const auto member = members_.find({beat->role(), beat->index()});
        if (!beat->leaving() || member == members_.end()) return;
        *beat->mutable_envelope() = *site_.envelope;
        beat->set_incarnation(member->second);
      });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<std::pair<Role, uint32_t>, uint64_t> members_;  // incarnations
};

// Changes or refuses what the coordinator writes into the log.
class EditedLog final : public ForwardingFileSystem {
 public:
  using Edit = absl::Status (*)(RunLogEntry* entry);

  EditedLog(std::unique_ptr<FileSystem> disk, Edit edit)
      : ForwardingFileSystem(std::move(disk)), edit_(edit) {}
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    auto file = disk()->Create(path);
    if (!file.ok() || !absl::StrContains(path, "/log/")) return file;
    return std::make_unique<Draft>(*std::move(file), edit_);
  }

 private:
  class Draft final : public ForwardingFile {
   public:
    Draft(std::unique_ptr<WritableFile> file, Edit edit)
        : ForwardingFile(std::move(file)), edit_(edit) {}
    absl::Status Append(absl::string_view text) override {
      RunLogEntry entry;
      CHECK_OK(ParseText(text.substr(0, text.rfind("# crc32c")), "an entry", &entry));
      RETURN_IF_ERROR(edit_(&entry));
      return ForwardingFile::Append(CheckedText(entry));
    }

   private:
    const Edit edit_;
  };

  const Edit edit_;
};

DiskHook Editing(EditedLog::Edit edit) {
  return [edit](const Site& site, std::unique_ptr<FileSystem> disk) -> std::unique_ptr<FileSystem> {
    if (site.role != COORDINATOR) return disk;
    return std::make_unique<EditedLog>(std::move(disk), edit);
  };
}

absl::Status ForgetWhatCutsAreLeftFor(RunLogEntry* entry) {
  if (entry->has_cut()) entry->mutable_cut()->clear_left_for();
  return absl::OkStatus();
}

absl::Status RefuseMoves(RunLogEntry* entry) {
  return entry->has_left() ? absl::ResourceExhaustedError("planted") : absl::OkStatus();
}

}  // namespace

std::vector<Fault> EndFaults() {
  std::vector<Fault> faults = {
      {.says = "the end of a run that has failed or was stopped is not obeyed",
       .before_claim = IgnoreEnd},
      {.says = "members are told that the run has stopped before its log says so",
       .before_coordinator = Before<EarlyEnds>()},
      {.says = "a stop is lost if the coordinator dies after its cut",
       .before_claim = IgnoreCutOfStop},
      {.says = "a resume counts each time that its coordinator is started",
       .claim = ResumeOnceMore},
      {.says = "a coordinator of an earlier submission takes the run back", .claim = TakeRunBack},
      {.says = "a process that leaves its machine stops the run",
       .before_coordinator = Before<MovesThatStop>()},
      {.says = "a process that left its machine ends the next generation, too",
       .before_coordinator = Before<MovesOfAnybody>()},
      {.says = "a generation that follows a move counts as a restart",
       .disk = Editing(ForgetWhatCutsAreLeftFor),
       .claim = CallMoveRestart},
      {.says = "a coordinator that leaves its machine without a cut does not say so in the log",
       .disk = Editing(RefuseMoves)},
      {.says = "a failure is taken for a move", .claim = CallFailureMove},
  };
  for (Fault& fault : faults) fault.with_deaths = true;
  return faults;
}

}  // namespace satrap::simulation
