// Helpers for tests of the PsEngine: a job with one small table, its embedding PSs in one thread,
// and calls to them.

#ifndef SATRAP_EMBEDDING_PS_TESTING_PS_ENGINE_FIXTURE_H_
#define SATRAP_EMBEDDING_PS_TESTING_PS_ENGINE_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"
#include "embedding_ps/ps_engine.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr uint32_t kTable = 4;
inline constexpr size_t kValues = 3;

Envelope ThisRun();

// A job with one table, whose segments have dims 2 and 1. Values begin at 1, and the optimizer is
// SGD with rate 1, so a row is 1 minus the sum of its normalised gradients.
JobConfig PsTestJob(JobConfig::Mode mode, int ranks, int num_ps);

using Answers = std::vector<absl::StatusOr<rpc::Message>>;

// The embedding PSs of one job, with methods to call them.
class Pss {
 public:
  // `disk_executor` is not owned. If it is null, the executor of the calls is used.
  explicit Pss(const JobConfig& job, Executor* disk_executor = nullptr,
               SparseOptimizerFactory new_optimizer = NewSparseOptimizer);
  // Creates engines with `options`. Their envelope, index and executors are set here.
  Pss(const JobConfig& job, Executor* disk_executor, PsEngine::Options options);

  PsEngine& engine(int i = 0) { return *engines_[i]; }
  ManualExecutor& executor() { return executor_; }

  // Calls PS `ps`. The answer is appended to `answers` when it arrives.
  void Call(int ps, const rpc::Method& method, rpc::Message request, Answers* answers);
  absl::StatusOr<rpc::Message> CallAndWait(int ps, const rpc::Method& method, rpc::Message request);

  // The rows of `keys`, each read from the PS that owns it.
  std::map<uint64_t, std::vector<float>> Rows(const std::vector<uint64_t>& keys,
                                              bool training = true);

  static rpc::Message LookupOf(const std::vector<uint64_t>& keys, bool training = true,
                               absl::optional<uint64_t> step = absl::nullopt);
  static absl::StatusOr<std::vector<float>> Values(const absl::StatusOr<rpc::Message>& answer);

 private:
  ManualExecutor executor_;
  std::vector<std::unique_ptr<PsEngine>> engines_;
};

// An Update that a test may change before it sends it. As it is made, it is valid.
struct UpdateCall {
  UpdateHeader header;
  Buffer payload;

  rpc::Message Message() const { return {header.SerializeAsString(), payload}; }
};

UpdateCall UpdateOf(JobConfig::Mode mode, uint32_t rank, uint64_t step,
                    const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                    WireDtype dtype = F32);
// Like UpdateOf, for step 0, in f32 and with sample counts. If `gradients` is empty, all gradients
// are 0.
UpdateCall UpdateWithCounts(JobConfig::Mode mode, uint32_t rank, const std::vector<uint64_t>& keys,
                            const std::vector<uint32_t>& counts, std::vector<float> gradients = {});

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_TESTING_PS_ENGINE_FIXTURE_H_
