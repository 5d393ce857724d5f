#include "tests/simulation/plants/sim_plants_messages.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/reliable_call.h"
#include "proto/control.pb.h"

namespace satrap::simulation {
namespace {

template <typename Header>
void EditCallOf(rpc::Message* request, const std::function<void(int stream, CallId*)>& edit) {
  EditHeader<Header>(request, [&edit](Header* header) {
    int stream = TRAIN_STREAM;
    if constexpr (requires { header->stream(); }) stream = header->stream();
    edit(stream, header->mutable_call());
  });
}

// The receiver has no memory of calls: an attempt whose answer was lost runs again.
class ForgetfulWindow final : public PlantedHandler {
 public:
  ForgetfulWindow(const Site& site, rpc::Handler* next, const rpc::Method& method)
      : PlantedHandler(site, next), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) {
      EditCall(method, &request, [this](int, CallId* call) { Renumber(call, ++last_number_); });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  const rpc::Method method_;
  uint64_t last_number_ = 0;  // over all senders
};

// The receiver forgets an answer when its number is closed, and then mistakes a late copy of any
// method's call for a new one. It still recognises repeats of open calls.
class ClosedCallsRun final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    EditCall(method, &request, [&](int stream, CallId* call) {
      uint64_t& oldest_open = oldest_open_[{method.path, call->sender(), stream}];
      oldest_open = std::max<uint64_t>(oldest_open, call->oldest_open());
      if (call->number() < oldest_open) call->set_number(kFirstPlantedNumber + count_++);
    });
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<std::tuple<std::string, uint32_t, int>, uint64_t> oldest_open_;
  uint64_t count_ = 0;
};

// Drops the calls of a method but answers that they were done.
class Swallower final : public PlantedHandler {
 public:
  Swallower(const Site& site, rpc::Handler* next, const rpc::Method& method)
      : PlantedHandler(site, next), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) return respond(DoneMessage());
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  const rpc::Method method_;
};

// Answers the calls of a method at once, but passes them to the PS up to 20 ms later. These are
// calls that ranks number.
class EarlyAnswers final : public PlantedHandler {
 public:
  EarlyAnswers(const Site& site, rpc::Handler* next, const rpc::Method& method)
      : PlantedHandler(site, next), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == method_)) return Pass(method, std::move(request), std::move(respond));
    bool is_new = false;
    EditCall(method, &request, [&](int, CallId* call) {
      is_new = seen_.emplace(call->sender(), call->number()).second;
      // The sender believes that the call is answered and closes its number, but the call must
      // still run.
      call->set_oldest_open(1);
    });
    // Passes on only the first attempt, so that the call is late but not doubled.
    respond(DoneMessage());
    if (is_new) PassLate(20000, method, std::move(request), ExpectNoError);
  }

 private:
  const rpc::Method method_;
  std::set<std::pair<uint32_t, uint64_t>> seen_;
};

// The pushes of one rank that wait for an answer, over all its channels, by number.
struct OpenPushes {
  std::map<uint64_t, rpc::Callback> open;

  void AnswerOldest() {
    if (open.empty()) return;
    rpc::Callback done = std::move(open.begin()->second);
    open.erase(open.begin());
    done(DoneMessage());
  }
};

// Delivers pushes reliably but answers them wrongly: each one at once or, with `out_of_order`, the
// oldest open one whenever any push is answered.
class MisansweredPushes final : public rpc::Channel {
 public:
  MisansweredPushes(rpc::Channel* channel, std::shared_ptr<OpenPushes> pushes, bool out_of_order,
                    SimLoop* loop)
      : channel_(channel), pushes_(std::move(pushes)), out_of_order_(out_of_order), loop_(loop) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (!(method == rpc::kPushGradients)) {
      channel_->Call(method, std::move(request), timeout_ms, std::move(done));
      return;
    }
    uint64_t number = 0;
    EditCall(method, &request, [&](int, CallId* call) {
      number = call->number();
      // The rank may believe that the push is answered and close its number, but the push must
      // still run.
      call->set_oldest_open(1);
    });
    pushes_->open[number] = std::move(done);
    if (!out_of_order_) loop_->Post([this] { pushes_->AnswerOldest(); });
    Deliver(request, timeout_ms);
  }

 private:
  void Deliver(const rpc::Message& request, int64_t timeout_ms) {
    channel_->Call(rpc::kPushGradients, request, timeout_ms,
                   [this, request, timeout_ms](absl::StatusOr<rpc::Message> answer) {
                     // The fault is the moment at which the permit of a push returns. The push
                     // itself is not lost: it always arrives.
                     if (answer.ok() && rpc::OutcomeOf(*answer) == OUTCOME_DONE) {
                       if (out_of_order_) pushes_->AnswerOldest();
                     } else {
                       loop_->PostAfter(
                           20000, [this, request, timeout_ms] { Deliver(request, timeout_ms); });
                     }
                   });
  }

  rpc::Channel* const channel_;
  const std::shared_ptr<OpenPushes> pushes_;
  const bool out_of_order_;
  SimLoop* const loop_;
};

ChannelsHook MisanswerPushes(bool out_of_order) {
  return [out_of_order](const Site& rank, const std::vector<rpc::Channel*>& channels) {
    auto pushes = std::make_shared<OpenPushes>();
    std::vector<std::unique_ptr<rpc::Channel>> made;
    for (rpc::Channel* channel : channels) {
      made.push_back(std::make_unique<MisansweredPushes>(channel, pushes, out_of_order, rank.loop));
    }
    return made;
  };
}

// In each ordered step, asks for the part of the next rank.
class OtherPartRequests final : public rpc::Channel {
 public:
  OtherPartRequests(const Site& rank, rpc::Channel* channel)
      : channel_(channel), part_((rank.index + 1) % rank.shape->ranks) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (method == rpc::kNextBatch) {
      EditHeader<NextBatchHeader>(&request, [this](NextBatchHeader* header) {
        // Every part is still trained once, but by the wrong rank. So sums are right, but parts are
        // not.
        if (header->has_wanted()) header->mutable_wanted()->set_part(part_);
      });
    }
    channel_->Call(method, std::move(request), timeout_ms, std::move(done));
  }

 private:
  rpc::Channel* const channel_;
  const int part_;
};

// Answers the last rank's pushes but does not send them.
class DroppedPushes final : public rpc::Channel {
 public:
  DroppedPushes(const Site& rank, rpc::Channel* channel) : rank_(rank), channel_(channel) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (!rank_.is_last || !(method == rpc::kPushGradients)) {
      return channel_->Call(method, std::move(request), timeout_ms, std::move(done));
    }
    rank_.loop->Post([done = std::move(done)]() mutable { done(DoneMessage()); });
  }

 private:
  const Site rank_;
  rpc::Channel* const channel_;
};

template <typename Planted>
ChannelsHook Through() {
  return [](const Site& rank, const std::vector<rpc::Channel*>& channels) {
    std::vector<std::unique_ptr<rpc::Channel>> made;
    for (rpc::Channel* channel : channels) {
      made.push_back(std::make_unique<Planted>(rank, channel));
    }
    return made;
  };
}

HandlerHook SetTraining(bool training) {
  return Before<Editor<LookupHeader>>(rpc::kLookup, [training](const Site&, LookupHeader* header) {
    header->set_training(training);
  });
}

std::vector<Fault> AttemptFaults() {
  return {
      {.says = "PutBatch runs once for each attempt",
       .before_worker = Before<ForgetfulWindow>(rpc::kPutBatch)},
      {.says = "NextBatch runs once for each attempt",
       .before_worker = Before<ForgetfulWindow>(rpc::kNextBatch)},
      {.says = "PushGradients runs once for each attempt",
       .before_worker = Before<ForgetfulWindow>(rpc::kPushGradients)},
      {.says = "Ack runs once for each attempt",
       .before_worker = Before<ForgetfulWindow>(rpc::kAck)},
      // If the answer to an Update was lost, its sender repeats it, and it would be applied twice.
      {.says = "Update runs once for each attempt",
       .before_ps = Before<ForgetfulWindow>(rpc::kUpdate)},
      // If the answer to a lease was lost, nobody would have the lease, and the split would never
      // be read.
      {.says = "LeaseSplit runs once for each attempt",
       .worlds = Fault::kHybrid,
       .before_coordinator = Before<ForgetfulWindow>(kLeaseSplit)},
      {.says = "a call whose number is closed runs again",
       .worlds = Fault::kHybrid,
       .before_ps = Before<ClosedCallsRun>(),
       .before_worker = Before<ClosedCallsRun>(),
       .before_coordinator = Before<ClosedCallsRun>()},
  };
}

}  // namespace

rpc::Message DoneMessage() {
  CallOutcome done;
  done.set_outcome(OUTCOME_DONE);
  return {done.SerializeAsString(), Buffer()};
}

void ExpectNoError(const absl::StatusOr<rpc::Message>& answer) { CHECK_OK(answer.status()); }

void EditCall(const rpc::Method& method, rpc::Message* request,
              const std::function<void(int stream, CallId*)>& edit) {
  if (method == rpc::kPutBatch) EditCallOf<PutBatchHeader>(request, edit);
  if (method == rpc::kNextBatch) EditCallOf<NextBatchHeader>(request, edit);
  if (method == rpc::kPushGradients) EditCallOf<PushGradientsHeader>(request, edit);
  if (method == rpc::kAck) EditCallOf<AckHeader>(request, edit);
  if (method == rpc::kUpdate) EditCallOf<UpdateHeader>(request, edit);
  if (method == rpc::kApplyStep) EditCallOf<ApplyStepHeader>(request, edit);
  if (method == kLeaseSplit) EditCallOf<LeaseSplitRequest>(request, edit);
}

void Renumber(CallId* call, uint64_t number) {
  call->set_number(number);
  call->set_oldest_open(1);
}

void SetCall(CallId* call, uint32_t sender, uint64_t number) {
  call->set_sender(sender);
  Renumber(call, number);
}

HandlerHook AtLast(HandlerHook hook) {
  return [hook = std::move(hook)](const Site& site, rpc::Handler* next) {
    return site.is_last ? hook(site, next) : nullptr;
  };
}

std::vector<Fault> MessageFaults() {
  std::vector<Fault> faults = {
      {.says = "a push of a step that is not finite is applied",
       .before_worker = Before<Editor<PushGradientsHeader>>(
           rpc::kPushGradients,
           [](const Site&, PushGradientsHeader* push) { push->mutable_step()->set_finite(true); })},
      {.says = "a permit returns before the push is answered",
       .worlds = Fault::kHybrid,
       .channels = MisanswerPushes(/*out_of_order=*/false)},
      {.says = "a rank's push is answered and never sent", .channels = Through<DroppedPushes>()},
      {.says = "permits return out of order",
       .worlds = Fault::kHybrid,
       .channels = MisanswerPushes(/*out_of_order=*/true)},
      {.says = "a PS answers an Update before it has applied it (hybrid)",
       .worlds = Fault::kHybrid,
       .before_ps = Before<EarlyAnswers>(rpc::kUpdate)},
      {.says = "a PS answers an Update before it has applied it (sync)",
       .worlds = Fault::kSync,
       .before_ps = Before<EarlyAnswers>(rpc::kUpdate)},
      {.says = "an Update is left out at one of the PSs",
       .before_ps = AtLast(Before<Swallower>(rpc::kUpdate))},
      {.says = "one of the PSs divides by another normalizer",
       .before_ps = AtLast(Before<Editor<UpdateHeader>>(rpc::kUpdate,
                                                        [](const Site&, UpdateHeader* update) {
                                                          StepHeader* step = update->mutable_step();
                                                          step->set_normalizer(2 *
                                                                               step->normalizer());
                                                        }))},
      // Then nobody releases the part, and the worker fills up over many evaluations.
      {.says = "a part stays outstanding after its Ack",
       .before_worker = Before<Swallower>(rpc::kAck)},
      {.says = "a Lookup of evaluation gives initial values", .before_ps = SetTraining(true)},
      {.says = "a Lookup of training gives zeros", .before_ps = SetTraining(false)},
      // Rank 0 is told that the best model is loaded, but the test scores the last one.
      {.says = "the best model is not loaded for the test",
       .before_ps = Before<Swallower>(rpc::kLoadTables)},
      {.says = "each rank asks for the next rank's part",
       .worlds = Fault::kSync,
       .channels = Through<OtherPartRequests>()},
      {.says = "a step is not clipped at one of the PSs",
       .worlds = Fault::kSync,
       .before_ps = AtLast(Before<Editor<ApplyStepHeader>>(
           rpc::kApplyStep,
           [](const Site&, ApplyStepHeader* header) { header->set_clip_factor(1); }))},
      {.says = "a step is clipped by the norm of its rows alone",
       .worlds = Fault::kSync,
       .before_worker =
           Before<Editor<PushGradientsHeader>>(rpc::kPushGradients,
                                               [](const Site&, PushGradientsHeader* push) {
                                                 push->mutable_step()->clear_dense_squares();
                                               })},
      {.says = "a PS answers ApplyStep before it has applied the step",
       .worlds = Fault::kSync,
       .before_ps = Before<EarlyAnswers>(rpc::kApplyStep)},
  };
  for (Fault& fault : AttemptFaults()) faults.push_back(std::move(fault));
  return faults;
}

}  // namespace satrap::simulation
