#include "nn_worker/rank/testing/fake_embedding_worker.h"

#include <algorithm>
#include <type_traits>

#include "common/base/check.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"

namespace satrap {

FakeEmbeddingWorker::FakeEmbeddingWorker(const RankOptions& options, const Cluster& cluster,
                                         uint64_t first_handle)
    : options_(options),
      cluster_(cluster),
      windows_(cluster.executor, options.timeouts.hold_ms * 1000),
      next_handle_(first_handle) {}

void FakeEmbeddingWorker::Put(const FakePart& part) {
  parts_[{part.id.stream(), part.id.epoch()}].push_back(part);
  ServeWaiting();
}

void FakeEmbeddingWorker::End(Stream stream, uint32_t epoch) {
  ended_.insert({stream, epoch});
  ServeWaiting();
}

void FakeEmbeddingWorker::Handle(const rpc::Method& method, rpc::Message request,
                                 rpc::Callback respond) {
  if (cluster_.orders->broken_method == method.path) {
    respond(absl::InvalidArgumentError("broken"));
  } else if (method == rpc::kNextBatch) {
    Run<NextBatchHeader>(method, request, std::move(respond), &FakeEmbeddingWorker::NextBatch);
  } else if (method == rpc::kPushGradients) {
    Run<PushGradientsHeader>(method, request, std::move(respond), &FakeEmbeddingWorker::Push);
  } else {
    CHECK(method == rpc::kAck);
    Run<AckHeader>(method, request, std::move(respond), &FakeEmbeddingWorker::Ack);
  }
}

template <typename Header>
void FakeEmbeddingWorker::Run(const rpc::Method& method, const rpc::Message& request,
                              rpc::Callback respond,
                              void (FakeEmbeddingWorker::*run)(const Header&, rpc::AnswerWindow*)) {
  Header header;
  CHECK(header.ParseFromString(request.header));
  int stream = TRAIN_STREAM;
  if constexpr (!std::is_same_v<Header, PushGradientsHeader>) stream = header.stream();
  const int method_index = method == rpc::kNextBatch ? 0 : method == rpc::kAck ? 1 : 2;
  rpc::AnswerWindow* window = windows_.Get(header.call().sender(), stream + 10 * method_index);
  if (window->Admit(header.call().number(), header.call().oldest_open(), std::move(respond)) ==
      rpc::Admission::kRun) {
    (this->*run)(header, window);
  }
}

void FakeEmbeddingWorker::NextBatch(const NextBatchHeader& header, rpc::AnswerWindow* window) {
  const uint64_t key = next_waiting_++;
  waiting_[key] = Waiting{header, window};
  ServeWaiting();
  if (header.has_wanted() || waiting_.count(key) == 0) return;
  cluster_.executor->PostAfter(int64_t{header.wait_ms()} * 1000, [this, key] {
    const auto waiting = waiting_.find(key);
    if (waiting == waiting_.end()) return;
    AnswerWithout(waiting->second, NextBatchAnswerHeader::NOT_YET);
    waiting_.erase(key);
  });
}

void FakeEmbeddingWorker::ServeWaiting() {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    it = Serve(it->second) ? waiting_.erase(it) : std::next(it);
  }
}

// Answers the request if that is possible now. Returns whether it was answered.
bool FakeEmbeddingWorker::Serve(const Waiting& waiting) {
  const Key key = {waiting.header.stream(), waiting.header.epoch()};
  // A later epoch does not begin before the current one has ended.
  const uint32_t first = key.first == TRAIN_STREAM ? options_.position.epoch() : 0;
  for (uint32_t earlier = first; earlier < key.second; ++earlier) {
    if (!Ended({key.first, earlier})) return false;
  }
  auto& queue = parts_[key];
  const auto part = std::find_if(queue.begin(), queue.end(), [&](const FakePart& p) {
    return !waiting.header.has_wanted() || NameOf(p.id) == NameOf(waiting.header.wanted());
  });
  if (part != queue.end()) {
    const FakePart copy = *part;
    queue.erase(part);
    HandOut(waiting, copy);
    return true;
  }
  if (!Ended(key)) return false;
  CHECK(!waiting.header.has_wanted()) << "a request for a part that does not exist";
  AnswerWithout(waiting, NextBatchAnswerHeader::ENDED);
  return true;
}

void FakeEmbeddingWorker::HandOut(const Waiting& waiting, const FakePart& part) {
  const int rank = static_cast<int>(waiting.header.call().sender());
  absl::optional<uint64_t> step;
  if (waiting.header.has_wanted()) step = waiting.header.step();
  cluster_.custody->HandOut(rank, part, step);
  const uint64_t handle = next_handle_++;
  handed_out_[handle] = HandedOut{part, rank};
  NextBatchAnswerHeader header;
  header.set_result(NextBatchAnswerHeader::PART);
  header.set_handle(handle);
  *header.mutable_part() = DescriptionOf(part);
  waiting.window->Finish(waiting.header.call().number(), rpc::MessageOf(header));
}

void FakeEmbeddingWorker::AnswerWithout(const Waiting& waiting,
                                        NextBatchAnswerHeader::Result result) {
  NextBatchAnswerHeader header;
  header.set_result(result);
  waiting.window->Finish(waiting.header.call().number(), rpc::MessageOf(header));
}

void FakeEmbeddingWorker::Push(const PushGradientsHeader& header, rpc::AnswerWindow* window) {
  const HandedOut ended = EndPart(header.handle(), header.call().sender());
  CHECK(header.step().normalizer() > 0);
  cluster_.custody->Push(header.step().step());
  cluster_.record->pushes.push_back(
      {ended.rank, header.step(), NameOf(ended.part.id), header.tables_size() > 0});
  waiting_pushes_.push_back(
      {header.step().step(), header.call().number(), window, 2 * header.step().dense_squares()});
  cluster_.on_push();
}

void FakeEmbeddingWorker::AnswerPushes() {
  for (auto it = waiting_pushes_.begin(); it != waiting_pushes_.end();) {
    if (!cluster_.custody->Applies(it->step)) {
      ++it;
      continue;
    }
    PushGradientsAnswerHeader answer;
    answer.set_outcome(OUTCOME_DONE);
    if (it->squares > 0) answer.set_squares(it->squares);
    it->window->Finish(it->number, rpc::MessageOf(answer));
    it = waiting_pushes_.erase(it);
  }
}

void FakeEmbeddingWorker::Ack(const AckHeader& header, rpc::AnswerWindow* window) {
  const HandedOut ended = EndPart(header.handle(), header.call().sender());
  CHECK(ended.part.id.stream() == header.stream());
  cluster_.record->acks.push_back(NameOf(ended.part.id));
  window->Finish(header.call().number(), rpc::Message());
}

FakeEmbeddingWorker::HandedOut FakeEmbeddingWorker::EndPart(uint64_t handle, uint32_t rank) {
  const auto found = handed_out_.find(handle);
  CHECK(found != handed_out_.end()) << "handle " << handle << " is not open";
  const HandedOut ended = found->second;
  CHECK(ended.rank == static_cast<int>(rank));
  handed_out_.erase(found);
  cluster_.custody->End(ended.rank, ended.part);
  return ended;
}

}  // namespace satrap
