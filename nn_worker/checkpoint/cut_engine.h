// Rank 0's half of a cut: makes its folder, has the embedding PSs mark and write their rows, writes
// the dense network and the manifest, and asks the coordinator to commit it.
// docs/consistency.md, "Cuts"; docs/formats.md, "Cut".
//
//     RUN/checkpoints/cut_GGGG_NNNNNN/   number N of generation G (common/checkpoint/run_log.h)
//       table_*.rows                     by the embedding PSs
//       dense.bin                        by this engine, as is the manifest, which comes last
//       manifest
//
// A cut ends in one of three ways:
//   committed   the coordinator's log has the cut, and the next generation begins from this cut or
//               a later one;
//   abandoned   something, such as the entry of the run's log, could not be written, or the
//               coordinator could not read the cut. Every PS is told to abandon the cut, and then
//               the folder is removed. The run continues without the cut. But it is an error if
//               this was the run's last cut. It is also an error if at least three cuts in a row
//               were abandoned, the last of them 30 s or more after the first;
//   an error    a peer is lost, this generation is over, or the cut has not ended
//               checkpoint.limit_seconds after its beginning. Then it is not known here whether the
//               cut is committed, so its folder stays for the coordinator to judge.
//
// The engine keeps the ledger of the whole run. It begins with the ledger of the cut from which the
// generation began. What ranks hand over for later cuts is added, even if those cuts are abandoned.
//
// One cut is written at a time; a Begin that comes earlier waits. Everything runs on `executor`,
// except for the file operations, which run on `disk_executor`. Public methods are thread-safe.

#ifndef SATRAP_NN_WORKER_CHECKPOINT_CUT_ENGINE_H_
#define SATRAP_NN_WORKER_CHECKPOINT_CUT_ENGINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/ledger/ledger.h"
#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "common/rpc/numbered_client.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "nn_worker/checkpoint/ps_control_client.h"
#include "nn_worker/rank/schedule/cut_plan.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class CutEngine {
 public:
  // Nothing is owned. All must outlive the engine, and the engine must outlive its calls and tasks.
  struct Options {
    JobConfig job;  // resolved
    Envelope envelope;
    uint64_t order_fingerprint = 0;
    LedgerState ledger;  // of the cut that this generation begins from
    rpc::RpcTimeouts timeouts;
    Executor* executor = nullptr;  // runs one task at a time
    Executor* disk_executor = nullptr;
    FileSystem* file_system = DiskFileSystem();
    KillPoints* kill_points = nullptr;  // may be null
    std::vector<rpc::Channel*> embedding_ps;
    rpc::Channel* coordinator = nullptr;
  };
  using Marked = absl::AnyInvocable<void()>;
  using Ended = absl::AnyInvocable<void(absl::StatusOr<CutOutcome>)>;

  // DATA_LOSS if the ledger contradicts itself.
  static absl::StatusOr<std::unique_ptr<CutEngine>> Create(const Options& options);
  ~CutEngine();

  // Begins the cut of `plan`. `released` holds the records that each rank has released since the
  // previous cut, and `dense` is the dense network (Network::Save). `marked` runs when all PSs have
  // marked their rows, unless the cut ends before that. `ended` runs once, when the cut has ended.
  // After an error the engine ends every further cut with that error. Errors: DATA_LOSS if a record
  // was trained twice; FAILED_PRECONDITION if too many cuts in a row were abandoned, or if the
  // run's last cut was abandoned; UNAVAILABLE, saying what is missing, if the cut has not ended
  // within its limit; the errors of calls to the PSs and of CommitCut, except that
  // FAILED_PRECONDITION of CommitCut becomes ABORTED, because this code says that the generation is
  // over. REQUIRES: no Update is under way until `marked` has run
  void Begin(CutPlan plan, std::vector<LedgerState> released, std::string dense, Marked marked,
             Ended ended);

  // The ledger's totals as of the last Begin.
  Ledger::Totals consumed() const;

  PsControlClient* embedding_ps() { return &embedding_ps_; }

 private:
  struct Cut;
  CutEngine(const Options& options, Ledger ledger);

  // Runs `work` on the disk executor. Afterwards, if the cut is still the current one, calls `then`
  // with the result on the executor.
  void OnDisk(std::function<absl::Status()> work, void (CutEngine::*then)(absl::Status));
  // A callback for any thread: runs `then` on the executor if the cut is still the current one.
  template <typename T>
  absl::AnyInvocable<void(T)> InCut(std::function<void(T)> then);

  void StartNext();
  void StartCurrent();
  int64_t PauseUs() const;
  void EndAfterLimit();
  absl::Status MergeLedgers();
  void OnFolder(absl::Status status);
  void OnMarked(absl::Status status);
  void OnFilesOfPs(size_t ps, absl::StatusOr<rpc::Message> answer);
  void OnDense(absl::Status status);
  void WriteManifestWhenWhole();
  void OnManifest(absl::Status status);
  void OnCommitted(absl::StatusOr<rpc::Message> answer);
  void Abandon(std::string cause, bool copy_limit);
  void RemoveFolderWhenIdle();
  void OnRemoved(absl::Status status);
  void Reach(KillPoint::Point point);
  void End(absl::StatusOr<CutOutcome> outcome);

  const Options options_;
  PsControlClient embedding_ps_;
  rpc::NumberedClient commit_;

  // Used on the executor only.
  Ledger ledger_;
  absl::Status broken_;       // the first error
  std::shared_ptr<Cut> cut_;  // shared with tasks on the disk executor
  std::deque<std::shared_ptr<Cut>> waiting_;
  int abandoned_in_a_row_ = 0;
  int64_t first_abandoned_us_ = 0;  // of those
  int64_t last_abandoned_us_ = 0;
  int copy_limits_in_a_row_ = 0;

  mutable Mutex mutex_;
  Ledger::Totals consumed_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_CHECKPOINT_CUT_ENGINE_H_
