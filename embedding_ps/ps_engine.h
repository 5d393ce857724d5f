// The PsEngine serves the rows of the partitions that one embedding PS owns: Lookup and Update for
// embedding workers; cuts, loads and TableStats for rank 0. docs/consistency.md has the rules.
// Below, each method has the answer window that admits its calls, an arrow, and what a call does,
// with the executor that runs it in parentheses.
//
//   Lookup  answer window of the embedding worker -> (executor) values of rows; absent rows give
//           their initial value (training) or zeros. Never changes a table.
//   Update  answer window of the rank ->
//             unordered: applied when it arrives (executor), then answered
//             ordered: collected; when all parts of the step have arrived, they are summed in part
//                      order and applied (executor), then all are answered. With
//                      gradient_clip_norm they are answered with squares first, and ApplyStep, in
//                      another answer window of the rank, applies the step (executor)
//   BeginCut  answer window of rank 0 -> (executor) marks all rows, which are then written in the
//           background (PsCuts). Refused with FAILED_PRECONDITION while an Update is open, and
//           after the tables were restored (see LoadTables). With hold_updates, Updates wait until
//           the rows are written.
//   AwaitCut, AbandonCut  answer windows of rank 0 -> answered when the cut has ended
//   LoadTables  answer window of rank 0 -> (load executor) replaces all rows. Refused with
//           FAILED_PRECONDITION while Updates are open. An Update that arrives during a load, or
//           after a load that left no rows, is refused with INVALID_ARGUMENT. If an Update, a cut
//           or a load other than a warm start has come before this load, the tables count as
//           restored: their rows are for an evaluation only.
//
// A request that breaks the contract is refused with INVALID_ARGUMENT, and a request from another
// job or generation with FAILED_PRECONDITION. Neither changes anything.
//
// Thread-safe. Only tasks of the disk executor and of the load executor block, on files; none of
// them waits for another.

#ifndef SATRAP_EMBEDDING_PS_PS_ENGINE_H_
#define SATRAP_EMBEDDING_PS_PS_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/file/file_system.h"
#include "common/role/kill_points.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/clipped_step.h"
#include "embedding_ps/latest_time.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/ps_counts.h"
#include "embedding_ps/ps_cuts.h"
#include "embedding_ps/request/decoded_update.h"
#include "embedding_ps/request/table_ownership.h"
#include "embedding_ps/step_collector.h"
#include "embedding_ps/table/embedding_table.h"
#include "embedding_ps/update_gate.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/position.pb.h"

namespace satrap {

class PsEngine final : public rpc::Handler {
 public:
  struct Options {
    Envelope envelope;  // of this run
    int index = 0;      // of this embedding PS
    Executor* executor = nullptr;
    // Runs the tasks that wait for files, at most as many at a time as the job's field `threads`
    // says. May be the same object as `executor`.
    Executor* disk_executor = nullptr;
    // Runs loads; meanwhile this PS does nothing else. If null, disk_executor runs them.
    Executor* load_executor = nullptr;
    FileSystem* file_system = DiskFileSystem();
    KillPoints* kill_points = nullptr;  // may be null
    uint64_t first_step = 0;            // the number of steps that are counted already
    google::protobuf::RepeatedPtrField<FrozenSteps> frozen_steps;  // among these, by table
    rpc::RpcTimeouts timeouts;
    SparseOptimizerFactory new_optimizer = NewSparseOptimizer;
  };

  using Counts = PsCounts;
  // Fails only with the INVALID_ARGUMENT of EmbeddingTable::Create. Executors, file system and kill
  // points are not owned and must outlive the engine. The engine must outlive the executors' tasks.
  static absl::StatusOr<std::unique_ptr<PsEngine>> Create(const JobConfig& job,
                                                          const Options& options);

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  // Loads the rows with which this PS begins, from the cut in `directory`. `done` gets OK or an
  // error of checkpoint/load_tables.h, in a task of the executor that runs loads. REQUIRES: no call
  // has been served yet
  void Load(const std::string& directory, absl::AnyInvocable<void(absl::Status)> done);
  // Creates those rows of FeatureConfig.preload_ids that this PS owns. REQUIRES: as for Load
  void Preload();
  Counts counts() const;
  std::vector<TableStats> Stats() const;

 private:
  PsEngine(const JobConfig& job, const Options& options,
           std::vector<std::unique_ptr<EmbeddingTable>> tables);

  // Receives a call of one method: `receiver` admits it, and `run` runs it once.
  template <typename Header, rpc::CallReceiver PsEngine::*receiver, auto run>
  void Receive(rpc::Message request, rpc::Callback respond);
  // These run the calls that Receive has admitted.
  void OnUpdate(const rpc::PendingAnswer& call, UpdateHeader header, Buffer payload);
  void OnApplyStep(const rpc::PendingAnswer& call, ApplyStepHeader header, const Buffer&);
  void OnLookup(const rpc::PendingAnswer& call, LookupHeader header, Buffer payload);
  void OnBeginCut(const rpc::PendingAnswer& call, BeginCutRequest request, const Buffer&);
  void OnAwaitCut(const rpc::PendingAnswer& call, const AwaitCutRequest& request, const Buffer&);
  void OnAbandonCut(const rpc::PendingAnswer& call, const AbandonCutRequest& request,
                    const Buffer&);
  void OnLoadTables(const rpc::PendingAnswer& call, const LoadTablesRequest& request,
                    const Buffer&);

  absl::StatusOr<rpc::Message> Lookup(const LookupHeader& header, const Buffer& payload);
  void UpdateUnordered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                       const DecodedUpdate& update);
  void UpdateOrdered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                     DecodedUpdate update);
  void ApplySum(StepSum sum, float clip_factor, absl::AnyInvocable<void(const StepSum&)> done);
  void AnswerWithSquares(StepSum sum);
  void AwaitApplyStep(StepSum sum, const ExactSum& squares);
  void RunApplyStep(const rpc::PendingAnswer& call, const ApplyStepHeader& header);
  static StepContext ContextOf(const StepHeader& header, double part_share);
  void FinishUpdate(const rpc::PendingAnswer& call, absl::StatusOr<rpc::Message> answer);
  void Apply(const StepContext& context, int table, absl::Span<const uint64_t> keys,
             absl::Span<const float> gradients, absl::Span<const uint32_t> sample_counts);
  void RunUpdate(const rpc::PendingAnswer& call, UpdateHeader header, Buffer payload);
  absl::Status BeginCut(const BeginCutRequest& request);
  void ReleaseUpdates(uint64_t cut);
  void LoadTables(const std::string& directory, bool from_model, rpc::Callback done);
  void OnTableStats(rpc::Message request, rpc::Callback respond);
  absl::StatusOr<rpc::Message> AnswerStats(const rpc::Message& request);

  const JobConfig job_;
  const Options options_;
  const TableOwnership ownership_;
  const bool ordered_;
  const std::vector<std::unique_ptr<EmbeddingTable>> tables_;  // in the order of JobConfig.tables
  rpc::CallReceiver lookup_receiver_;                          // calls of embedding workers
  rpc::CallReceiver update_receiver_, apply_receiver_;         // their calls, numbered by ranks
  // These receive calls of rank 0.
  rpc::CallReceiver begin_cut_receiver_, await_cut_receiver_, abandon_cut_receiver_, load_receiver_;
  PsCuts cuts_;

  Mutex mutex_;
  StepCollector collector_ GUARDED_BY(mutex_);
  ClippedStep clipped_ GUARDED_BY(mutex_);
  // The number of ordered steps that have been applied to the tables: collector_.step(), minus one
  // while a step waits for its factor or is being applied.
  uint64_t applied_steps_ GUARDED_BY(mutex_);
  UpdateGate gate_ GUARDED_BY(mutex_);

  std::atomic<uint64_t> lookup_keys_{0}, absent_keys_{0};
  std::atomic<uint64_t> updates_{0}, update_keys_{0}, rows_created_{0};
  LatestTime data_time_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_ENGINE_H_
