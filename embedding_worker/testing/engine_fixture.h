// Helpers that make the engine's tests short: an engine on a ManualExecutor, two fake embedding
// PSs, and functions that make a call in one line. When such a function returns, the answer is
// known, unless the engine holds it back.

#ifndef SATRAP_EMBEDDING_WORKER_TESTING_ENGINE_FIXTURE_H_
#define SATRAP_EMBEDDING_WORKER_TESTING_ENGINE_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "gtest/gtest.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

inline constexpr uint64_t kTestFingerprint = 0xabcdef;
inline constexpr uint64_t kTestRunId = 0x1234567812345678;

// A job with two PSs, two ranks, one loader and a queue capacity of two parts. Table "t" (id 3) has
// 3 values per row: its feature "a" is sent as rows, and "bag" (its own ids) and "mix" (a's ids)
// are pooled. Table "u" (id 9) has 1 value per row: its feature "c" is sent as rows.
JobConfig TestJob();

// Column `c` of the row that the fake PSs return for `key`. The values are small integers, which
// are exact in every wire dtype.
float TestValue(uint64_t key, size_t c);

// The key of an id in the id space `space`.
uint64_t KeyIn(const char* space, uint64_t id);

// Values by (table, key).
template <typename T>
using ByKey = std::map<std::pair<uint32_t, uint64_t>, T>;

// A PS that answers every Lookup with TestValue, and keeps the contents of the Updates.
class FakePs final : public rpc::Channel {
 public:
  struct SeenUpdate {
    UpdateHeader header;
    ByKey<std::vector<float>> gradients;
    ByKey<uint32_t> counts;
  };

  FakePs(ManualExecutor* executor, WireDtype dtype) : executor_(executor), dtype_(dtype) {}
  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override;

  absl::Status error;        // the answer to everything, unless OK
  absl::Status apply_error;  // the answer to ApplyStep, unless OK
  double squares = -1;       // in the answer to an Update; < 0: none
  bool answer_one_row_less = false;
  std::vector<LookupHeader> lookups;
  std::vector<SeenUpdate> updates;
  std::vector<ApplyStepHeader> apply_steps;  // the ones that were answered without an error

 private:
  rpc::Message Lookup(const rpc::Message& request);
  rpc::Message Update(const rpc::Message& request);

  ManualExecutor* const executor_;
  const WireDtype dtype_;
};

// The answer to one attempt of a call; absent until it comes.
using Reply = std::shared_ptr<absl::optional<absl::StatusOr<rpc::Message>>>;

absl::StatusCode CodeOf(const Reply& reply);

template <typename Header>
Header HeaderOf(const Reply& reply) {
  Header header;
  EXPECT_TRUE(reply->has_value()) << "not answered";
  if (!reply->has_value()) return header;
  EXPECT_TRUE((*reply)->ok()) << (*reply)->status();
  if (!(*reply)->ok()) return header;
  EXPECT_TRUE(header.ParseFromString((**reply)->header));
  return header;
}

class EngineTest : public testing::Test {
 protected:
  using PutMessage = std::pair<PutBatchHeader, Buffer>;
  using PushMessage = std::pair<PushGradientsHeader, Buffer>;

  void Start(const JobConfig& job, int index = 0);

  // Sends one attempt of a call, then runs the engine until it has nothing more to do.
  template <typename Header>
  Reply Send(const rpc::Method& method, Header header, uint32_t sender, uint64_t number,
             Buffer payload = Buffer()) {
    *header.mutable_envelope() = envelope_;
    header.mutable_call()->set_sender(sender);
    header.mutable_call()->set_number(number);
    header.mutable_call()->set_oldest_open(oldest_open_);
    return SendBytes(method, {header.SerializeAsString(), std::move(payload)});
  }
  Reply SendBytes(const rpc::Method& method, rpc::Message message);

  // If offsets[f] is empty, feature f has one id per sample.
  static PutMessage MakePart(Stream stream, uint32_t epoch, uint64_t seq, uint32_t samples,
                             const std::vector<std::vector<uint64_t>>& ids,
                             const std::vector<std::vector<uint32_t>>& offsets);
  // a = {1, 2}, bag = {[7, 8], []}, mix = {1, 3}, c = {5, 5}: six keys.
  static PutMessage TwoSamples(Stream stream, uint32_t epoch, uint64_t seq);

  // Sends a part as loader 0. PutTwoSamples sends a part of the train stream with seq = number.
  Reply Put(uint64_t number, const PutMessage& part);
  Reply PutTwoSamples(uint64_t number, uint32_t epoch = 0);
  Reply End(uint64_t number, uint32_t epoch);

  Reply Next(uint32_t rank, uint64_t number, uint32_t epoch = 0, uint32_t wait_ms = 0,
             Stream stream = TRAIN_STREAM);
  Reply NextOrdered(uint32_t rank, uint64_t number, const PartId& wanted, uint64_t step);
  Reply Ack(uint32_t rank, uint64_t number, uint64_t handle, Stream stream = TRAIN_STREAM);

  // A push of step 4, whose gradients are 1, 2, 3, ... through all sections in order.
  static PushMessage PushOf(const NextBatchAnswerHeader& part, bool finite = true);
  Reply Push(uint32_t rank, uint64_t number, const PushMessage& push);

  // The Updates that the PSs have received, and all gradients in them.
  std::vector<FakePs::SeenUpdate> Updates() const;
  ByKey<std::vector<float>> Gradients() const;

  Envelope envelope_;
  RunPosition position_;  // for the engine that Start makes, as is the next
  CandidateList candidates_;
  KillPoints* kill_points_ = nullptr;
  ManualExecutor executor_;
  uint64_t oldest_open_ = 1;
  std::vector<std::unique_ptr<FakePs>> ps_;
  std::vector<absl::Status> failures_;
  std::unique_ptr<EmbeddingWorkerEngine> engine_;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_WORKER_TESTING_ENGINE_FIXTURE_H_
