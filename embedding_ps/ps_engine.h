// The PsEngine serves the rows of the partitions that one embedding PS owns: Lookup and Update for
// embedding workers, SaveTables, LoadTables and TableStats for rank 0. docs/consistency.md has the
// rules.
//
//   Lookup  window of the embedding worker -> (executor) values of rows; absent rows give their
//           initial value (training) or zeros. Never changes a table.
//   Update  window of the rank ->
//             unordered: applied as it comes (executor), then answered
//             ordered: collected; when all parts of the step are there, they are summed in part
//                      order and applied (executor), then all are answered
//   SaveTables, LoadTables  (disk executor) so that a long save delays no Lookup and no Update.
//           A load is refused with FAILED_PRECONDITION while Updates are outstanding. An Update
//           that arrives during a load, or after one that failed, is refused with INVALID_ARGUMENT.
//
// A request that breaks the contract is refused with INVALID_ARGUMENT, one from another job or
// generation with FAILED_PRECONDITION. Neither changes anything.
//
// Thread-safe. Lookup and Update never block; SaveTables and LoadTables hold a thread of the disk
// executor while they work.

#ifndef SATRAP_EMBEDDING_PS_PS_ENGINE_H_
#define SATRAP_EMBEDDING_PS_PS_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/rpc.h"
#include "common/rpc/timeouts.h"
#include "common/thread/executor.h"
#include "common/thread/mutex.h"
#include "embedding_ps/decoded_update.h"
#include "embedding_ps/optimizer/sparse_optimizer.h"
#include "embedding_ps/step_collector.h"
#include "embedding_ps/table/embedding_table.h"
#include "embedding_ps/table_ownership.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class PsEngine final : public rpc::Handler {
 public:
  struct Options {
    Envelope envelope;  // of this run
    int index = 0;      // of this embedding PS
    Executor* executor = nullptr;
    Executor* disk_executor = nullptr;  // for tasks that block on files; may be the same
    rpc::RpcTimeouts timeouts;
    SparseOptimizerFactory new_optimizer = NewSparseOptimizer;
  };

  struct Counts {
    uint64_t lookup_keys = 0;
    uint64_t absent_keys = 0;  // of them
    uint64_t updates = 0;      // applied
    uint64_t update_keys = 0;
    uint64_t rows_created = 0;
  };

  // INVALID_ARGUMENT as EmbeddingTable::Create. The executors are not owned; they must
  // outlive the engine, and the engine their tasks.
  static absl::StatusOr<std::unique_ptr<PsEngine>> Create(const JobConfig& job,
                                                          const Options& options);

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

  // Replaces all rows by those of the saved model in `directory`. Errors as LoadTables of
  // checkpoint/load_tables.h. REQUIRES: no Update is running
  absl::Status Load(const std::string& directory);

  // Creates the rows that FeatureConfig.preload_ids asks for, as far as this PS owns them.
  // REQUIRES: before any call is served
  void Preload();

  Counts counts() const;
  std::vector<TableStats> Stats() const;

 private:
  PsEngine(const JobConfig& job, const Options& options,
           std::vector<std::unique_ptr<EmbeddingTable>> tables);

  absl::Status CheckEnvelope(const Envelope& envelope) const;
  absl::StatusOr<rpc::Message> Lookup(const LookupHeader& header, const Buffer& payload);
  void Update(const rpc::PendingAnswer& call, UpdateHeader header, Buffer payload);
  void UpdateUnordered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                       const DecodedUpdate& update);
  void UpdateOrdered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                     DecodedUpdate update);
  void ApplyStep(const StepCollector::Complete& step);
  // Answers an Update that the window has admitted.
  void FinishUpdate(const rpc::PendingAnswer& call, absl::StatusOr<rpc::Message> answer);
  void Apply(const StepHeader& header, int table, absl::Span<const uint64_t> keys,
             absl::Span<const float> gradients, absl::Span<const uint32_t> sample_counts);
  absl::StatusOr<rpc::Message> SaveTables(const rpc::Message& request);
  absl::StatusOr<rpc::Message> LoadTables(const rpc::Message& request);
  absl::StatusOr<rpc::Message> AnswerStats(const rpc::Message& request);

  const JobConfig job_;
  const Options options_;
  const TableOwnership ownership_;
  const bool ordered_;
  const std::vector<std::unique_ptr<EmbeddingTable>> tables_;  // in the order of JobConfig.tables
  rpc::CallReceiver lookup_receiver_;                          // of embedding workers
  rpc::CallReceiver update_receiver_;  // of ranks, whose numbers embedding workers pass on

  Mutex disk_mutex_;  // one save or load at a time

  Mutex mutex_;
  StepCollector collector_ GUARDED_BY(mutex_);
  // Ordered steps whose values are in the tables: collector_.step(), less the step that is being
  // applied.
  uint64_t applied_steps_ GUARDED_BY(mutex_) = 0;
  // A load may begin while no Update is open, and an Update while no load runs.
  int64_t open_updates_ GUARDED_BY(mutex_) = 0;  // admitted by a window and not yet answered
  int loads_ GUARDED_BY(mutex_) = 0;             // running, and those that failed

  std::atomic<uint64_t> lookup_keys_{0};
  std::atomic<uint64_t> absent_keys_{0};
  std::atomic<uint64_t> updates_{0};
  std::atomic<uint64_t> update_keys_{0};
  std::atomic<uint64_t> rows_created_{0};
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_PS_ENGINE_H_
