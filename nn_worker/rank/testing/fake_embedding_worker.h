// An embedding worker and its embedding PSs, for tests of RankEngines. It has queues of parts,
// waiting requests, and answer windows, so that a repeated call takes effect once. It CHECKs that a
// part is pushed or acknowledged once, by the rank that holds it.

#ifndef SATRAP_NN_WORKER_RANK_TESTING_FAKE_EMBEDDING_WORKER_H_
#define SATRAP_NN_WORKER_RANK_TESTING_FAKE_EMBEDDING_WORKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/rpc/answer_window.h"
#include "common/rpc/rpc.h"
#include "common/testing/manual_executor.h"
#include "nn_worker/rank/rank_options.h"
#include "nn_worker/rank/testing/fake_part.h"
#include "nn_worker/rank/testing/fake_record.h"
#include "nn_worker/rank/testing/part_custody.h"

namespace satrap {

class FakeEmbeddingWorker final : public rpc::Handler {
 public:
  struct Cluster {  // nothing is owned
    ManualExecutor* executor = nullptr;
    const FakeOrders* orders = nullptr;
    FakeRecord* record = nullptr;
    PartCustody* custody = nullptr;
    std::function<void()> on_push;  // calls AnswerPushes of every worker
  };
  // Handles begin at `first_handle`.
  FakeEmbeddingWorker(const RankOptions& options, const Cluster& cluster, uint64_t first_handle);

  // Put queues a part. End declares that no more parts of (stream, epoch) will come.
  void Put(const FakePart& part);
  void End(Stream stream, uint32_t epoch);

  // Answers the waiting pushes that the embedding PSs apply.
  void AnswerPushes();

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override;

 private:
  using Key = std::pair<Stream, uint32_t>;
  struct Waiting {
    NextBatchHeader header;
    rpc::AnswerWindow* window;
  };
  struct HandedOut {
    FakePart part;
    int rank;
  };
  struct WaitingPush {
    uint64_t step;
    uint64_t number;
    rpc::AnswerWindow* window;
    double squares;
  };

  template <typename Header>
  void Run(const rpc::Method& method, const rpc::Message& request, rpc::Callback respond,
           void (FakeEmbeddingWorker::*run)(const Header&, rpc::AnswerWindow*));
  void NextBatch(const NextBatchHeader& header, rpc::AnswerWindow* window);
  void Push(const PushGradientsHeader& header, rpc::AnswerWindow* window);
  void Ack(const AckHeader& header, rpc::AnswerWindow* window);

  bool Ended(Key key) { return ended_.count(key) > 0 && parts_[key].empty(); }
  void ServeWaiting();
  bool Serve(const Waiting& waiting);
  void HandOut(const Waiting& waiting, const FakePart& part);
  void AnswerWithout(const Waiting& waiting, NextBatchAnswerHeader::Result result);
  HandedOut EndPart(uint64_t handle, uint32_t rank);

  const RankOptions options_;
  const Cluster cluster_;
  rpc::AnswerWindows windows_;
  std::map<Key, std::deque<FakePart>> parts_;
  std::set<Key> ended_;
  std::map<uint64_t, Waiting> waiting_;
  uint64_t next_waiting_ = 0;
  std::map<uint64_t, HandedOut> handed_out_;
  uint64_t next_handle_;
  std::vector<WaitingPush> waiting_pushes_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_RANK_TESTING_FAKE_EMBEDDING_WORKER_H_
