#include "tests/simulation/plants/sim_plants_cuts.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/checkpoint/manifest.h"
#include "common/file/durable_file.h"
#include "common/file/testing/forwarding_file_system.h"
#include "common/numeric/crc32c.h"
#include "common/numeric/hash.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "common/rpc/reliable_call.h"
#include "proto/control.pb.h"
#include "tests/simulation/data/sim_data.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

// Answers BeginCut at once; the PS gets it up to 50 ms later. Meanwhile rank 0 lets training
// continue, so the rows that are marked are newer than the ledger.
class LateMarks final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == rpc::kBeginCut)) {
      // Calls that follow a mark are delayed until after the mark.
      const bool waits = late_ > 0 && (method == rpc::kAwaitCut || method == rpc::kAbandonCut);
      return PassAfter(waits ? kLateUs : 0, method, std::move(request), std::move(respond));
    }
    ++late_;
    respond(DoneMessage());
    PassLate(kLateUs, method, std::move(request), [this](const auto&) { --late_; });
  }

 private:
  // The delay is longer than a step. Otherwise the late mark would find the same rows as a mark
  // that is not late.
  static constexpr int64_t kLateUs = 50000;

  int late_ = 0;
};

// A PS that forgot which numbers it has begun: every attempt of a BeginCut marks anew, and AwaitCut
// refers to the newest mark. To the engine each attempt looks like a separate cut with a higher
// number, so the engine's answer windows and its check of the order of cuts accept the attempt.
class LateBeginCuts final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kBeginCut) {
      auto begin = HeaderOf<BeginCutRequest>(request);
      // Sends one copy for each cut, up to 20 ms later, as the network may do. The copy comes
      // through this Handle again, like any other attempt.
      if (copies_.count(begin.cut()) == 0) {
        site_.loop->PostAfter(
            static_cast<int64_t>(site_.loop->random()->Below(20000)),
            [this, request] { Handle(rpc::kBeginCut, request, [](const auto&) {}); });
      }
      begin.set_cut(begin.cut() * kCopies + ++copies_[begin.cut()]);
      Renumber(begin.mutable_call(), kFirstPlantedNumber + count_++);
      request.header = begin.SerializeAsString();
    } else if (method == rpc::kAwaitCut) {
      EditHeader<AwaitCutRequest>(&request, [this](auto* await) { NameNewest(await); });
    } else if (method == rpc::kAbandonCut) {
      EditHeader<AbandonCutRequest>(&request, [this](auto* abandon) { NameNewest(abandon); });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  static constexpr uint64_t kCopies = 1000;

  // Replaces the number that the sender has given the cut by the number of the newest mark. So the
  // sender gets the files of the newest mark.
  template <typename Request>
  void NameNewest(Request* request) {
    request->set_cut(request->cut() * kCopies + copies_[request->cut()]);
  }

  std::map<uint64_t, uint64_t> copies_;  // by cut
  uint64_t count_ = 0;
};

// Imitates a PS in which an Update during a cut changes a row in place without saving the old row
// first. If an Update comes while a cut is written, the cut's file gets the counter row as it is
// after the Update, with right checksums. The counter row shows the fault best, because every push
// changes it.
class MissedCopyOuts final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kBeginCut) {
      const auto begin = HeaderOf<BeginCutRequest>(request);
      // A BeginCut may come several times. Only the first one of a new cut resets the state.
      if (begin.cut() > cut_) {
        cut_ = begin.cut();
        folder_ = begin.directory();
        envelope_ = begin.envelope();
        updated_ = rewriting_ = false;
        rewritten_.clear();
      }
    } else if (method == rpc::kUpdate) {
      updated_ = true;
    } else if (method == rpc::kAwaitCut) {
      respond = [this, cut = HeaderOf<AwaitCutRequest>(request).cut(),
                 respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
        if (cut != cut_ || !updated_ || !answer.ok() || rpc::OutcomeOf(*answer) != OUTCOME_DONE) {
          return respond(std::move(answer));
        }
        AnswerWithLaterRow(std::move(*answer), std::move(respond));
      };
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  void AnswerWithLaterRow(rpc::Message answer, rpc::Callback respond) {
    if (!rewritten_.empty()) return respond(rpc::Message{rewritten_, Buffer()});
    if (rewriting_) return;  // this attempt is lost, and the next one gets the answer
    AwaitCutAnswer files;
    CHECK(files.ParseFromString(answer.header));
    const auto file = std::find_if(files.mutable_files()->begin(), files.mutable_files()->end(),
                                   [](const SavedFile& saved) { return saved.table() == 0; });
    if (file == files.mutable_files()->end()) return respond(std::move(answer));
    rewriting_ = true;
    const auto index = file - files.mutable_files()->begin();
    // Reads the present row, which includes the Updates that came since the mark.
    Pass(rpc::kLookup, LookupOfCounters(),
         [this, cut = cut_, index, files = std::move(files),
          respond = std::move(respond)](absl::StatusOr<rpc::Message> row) mutable {
           CHECK_OK(row.status());
           if (cut != cut_) return;
           WriteRow(*row, files.mutable_files(static_cast<int>(index)));
           rewritten_ = files.SerializeAsString();
           respond(rpc::Message{rewritten_, Buffer()});
         });
  }

  rpc::Message LookupOfCounters() {
    LookupHeader header;
    *header.mutable_envelope() = envelope_;
    SetCall(header.mutable_call(), 0, kFirstNumber + lookups_++);
    header.set_training(false);
    TableKeys* asked = header.add_tables();
    asked->set_table(0);
    asked->set_num_keys(1);
    rpc::PayloadBuilder builder;
    builder.Reserve<uint64_t>(1, asked->mutable_keys());
    builder.Allocate();
    builder.Fill<uint64_t>(asked->keys())[0] = CounterKey();
    return {header.SerializeAsString(), builder.Take()};
  }

  // The file has one block of one row, whose optimizer has no state (docs/formats.md, "Saved
  // rows").
  void WriteRow(const rpc::Message& row, SavedFile* saved) {
    LookupAnswerHeader header;
    CHECK(header.ParseFromString(row.header));
    const auto values =
        rpc::SectionView<float>(row.payload, header.tables(0).values(), kCounterValues, "values");
    CHECK_OK(values.status());
    const std::string path = absl::StrCat(folder_, "/", saved->name());
    absl::StatusOr<std::string> bytes = ReadFile(path, site_.disk);
    CHECK_OK(bytes.status());
    constexpr size_t kBlock = 64, kKey = kBlock + 8, kRow = kKey + 8;
    constexpr size_t kRowBytes = kCounterValues * sizeof(float);
    CHECK(saved->rows() == 1 && bytes->size() == kRow + kRowBytes + 16);
    // Checksums and digest are computed again, so only the values show that the file is wrong.
    std::memcpy(bytes->data() + kRow, values->data(), kRowBytes);
    const absl::string_view view(*bytes);
    const uint32_t crc = ExtendCrc32c(Crc32c(view.substr(kBlock, 4)),
                                      view.substr(kKey, sizeof(uint64_t) + kRowBytes));
    std::memcpy(bytes->data() + kBlock + 4, &crc, sizeof(crc));
    const auto file = DurableFile::Create(path, site_.disk);
    CHECK_OK(file.status());
    CHECK_OK((*file)->Append(*bytes));
    CHECK_OK((*file)->Commit());
    saved->set_crc32c((*file)->crc32c());
    saved->set_rows_digest(Xxh64(view.substr(kRow, kRowBytes), CounterKey()));
  }

  // This number is larger than those of the Lookups that the checks make.
  static constexpr uint64_t kFirstNumber = kFirstPlantedNumber << 1;

  Envelope envelope_;
  uint64_t cut_ = 0;  // the newest
  std::string folder_;
  bool updated_ = false;    // an Update came since that cut's mark
  bool rewriting_ = false;  // the cut's file is being rewritten
  std::string rewritten_;   // the answer to its AwaitCut
  uint64_t lookups_ = 0;
};

class RewritingDisk final : public ForwardingFileSystem {
 public:
  RewritingDisk(std::unique_ptr<FileSystem> disk, const ForgetfulLedger* ledger)
      : ForwardingFileSystem(std::move(disk)), ledger_(ledger) {}

  absl::Status Rename(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(disk()->Rename(from, to));
    if (absl::EndsWith(to, kManifestName)) {
      ledger_->Rewrite(to.substr(0, to.size() - kManifestName.size()), disk());
    }
    return absl::OkStatus();
  }

 private:
  static constexpr absl::string_view kManifestName = "/manifest";

  const ForgetfulLedger* const ledger_;
};

}  // namespace

DiskHook RewrittenManifests() {
  return [](const Site& site, std::unique_ptr<FileSystem> disk) -> std::unique_ptr<FileSystem> {
    if (site.role != NN_WORKER) return disk;
    return std::make_unique<RewritingDisk>(std::move(disk), site.ledger);
  };
}

std::vector<Fault> CutFaults() {
  return {
      {.says = "a PS marks a cut after it has said so", .before_ps = Before<LateMarks>()},
      {.says = "a late copy of BeginCut is obeyed", .before_ps = Before<LateBeginCuts>()},
      {.says = "an Update misses its copy-out", .before_ps = Before<MissedCopyOuts>()},
  };
}

// This is the fault: an abandoned cut is not written, but the records that ranks handed over with
// it were trained, so later cuts must contain them.
void ForgetfulLedger::Abandon(uint64_t cut) {
  handed_over_.erase(std::remove_if(handed_over_.begin(), handed_over_.end(),
                                    [cut](const CutPlan& plan) { return plan.number == cut; }),
                     handed_over_.end());
}

LedgerState ForgetfulLedger::AsOf(uint64_t cut) const {
  absl::StatusOr<Ledger> ledger = Ledger::FromState(start_);
  CHECK_OK(ledger.status());
  for (const CutPlan& plan : handed_over_) {
    // Ranks may hand over the next cut's plan while the manifest of this cut is still being
    // written.
    if (plan.number > cut) continue;
    const absl::StatusOr<Ledger> released = Ledger::FromState(plan.released);
    CHECK_OK(released.status());
    // The checks must find a gap in the ledger. A gap causes no error here.
    ledger->Merge(*released).IgnoreError();
    ledger->CloseEpochsBefore(plan.position.epoch());
  }
  return ledger->ToState();
}

void ForgetfulLedger::Rewrite(const std::string& folder, FileSystem* disk) const {
  absl::StatusOr<CheckpointManifest> manifest = ReadManifest(folder, disk);
  CHECK_OK(manifest.status());
  *manifest->mutable_ledger() = AsOf(manifest->cut());
  CHECK_OK(WriteManifest(folder, *manifest, disk));
}

}  // namespace satrap::simulation
