#include "tests/simulation/plants/sim_plants_messages.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "common/rpc/reliable_call.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "tests/simulation/data/sim_data.h"

namespace satrap::simulation {
namespace {

template <typename Header>
void EditCallOf(rpc::Message* request, const std::function<void(int stream, CallId*)>& edit) {
  Header header;
  CHECK(header.ParseFromString(request->header));
  int stream = TRAIN_STREAM;
  // All calls without a stream are numbered as if they belonged to one stream.
  if constexpr (requires { header.stream(); }) stream = header.stream();
  edit(stream, header.mutable_call());
  request->header = header.SerializeAsString();
}

// Changes the CallId of a request of any method that has one.
void EditCall(const rpc::Method& method, rpc::Message* request,
              const std::function<void(int stream, CallId*)>& edit) {
  if (method == rpc::kPutBatch) EditCallOf<PutBatchHeader>(request, edit);
  if (method == rpc::kNextBatch) EditCallOf<NextBatchHeader>(request, edit);
  if (method == rpc::kPushGradients) EditCallOf<PushGradientsHeader>(request, edit);
  if (method == rpc::kAck) EditCallOf<AckHeader>(request, edit);
  if (method == rpc::kUpdate) EditCallOf<UpdateHeader>(request, edit);
  if (method == rpc::kApplyStep) EditCallOf<ApplyStepHeader>(request, edit);
  if (method == kLeaseSplitMethod) EditCallOf<LeaseSplitRequest>(request, edit);
}

// If the engine refused a planted call, the plant would break another promise than intended.
void IgnoreAnswer(absl::StatusOr<rpc::Message> answer) { CHECK_OK(answer.status()); }

// The receiver has no memory of calls: an attempt whose answer was lost runs again.
class ForgetfulWindow final : public rpc::Handler {
 public:
  ForgetfulWindow(rpc::Handler* engine, const rpc::Method& method)
      : engine_(engine), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) {
      EditCall(method, &request, [this](int, CallId* call) {
        call->set_number(++last_number_);
        call->set_oldest_open(1);
      });
    }
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  const rpc::Method method_;
  uint64_t last_number_ = 0;  // over all senders
};

// The receiver forgets an answer when its number is closed, and then mistakes a late copy for a new
// call. It still recognises repeats of open calls.
class ClosedCallsRun final : public rpc::Handler {
 public:
  explicit ClosedCallsRun(rpc::Handler* engine) : engine_(engine) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    EditCall(method, &request, [&](int stream, CallId* call) {
      uint64_t& oldest_open = oldest_open_[{method.path, call->sender(), stream}];
      oldest_open = std::max<uint64_t>(oldest_open, call->oldest_open());
      if (call->number() < oldest_open) call->set_number(kFirstPlantedNumber + count_++);
    });
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  std::map<std::tuple<std::string, uint32_t, int>, uint64_t> oldest_open_;
  uint64_t count_ = 0;
};

// Drops calls but answers that they are done.
class Swallower final : public rpc::Handler {
 public:
  Swallower(rpc::Handler* engine, const rpc::Method& method) : engine_(engine), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) {
      respond(DoneMessage());
    } else {
      engine_->Handle(method, std::move(request), std::move(respond));
    }
  }

 private:
  rpc::Handler* const engine_;
  const rpc::Method method_;
};

class EarlyAnswers final : public rpc::Handler {
 public:
  EarlyAnswers(rpc::Handler* ps, const rpc::Method& method, SimLoop* loop)
      : ps_(ps), method_(method), loop_(loop) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == method_)) {
      ps_->Handle(method, std::move(request), std::move(respond));
      return;
    }
    bool is_new = false;
    EditCall(method, &request, [&](int, CallId* call) {
      is_new = seen_.emplace(call->sender(), call->number()).second;
      // The sender believes that the call is answered and closes its number, but the call must
      // still run.
      call->set_oldest_open(1);
    });
    // Passes on only the first attempt, so that the call is late but not doubled.
    respond(DoneMessage());
    if (!is_new) return;
    loop_->PostAfter(static_cast<int64_t>(loop_->random()->Below(20000)),
                     [this, method, request = std::move(request)]() mutable {
                       ps_->Handle(method, std::move(request), IgnoreAnswer);
                     });
  }

 private:
  rpc::Handler* const ps_;
  const rpc::Method method_;
  SimLoop* const loop_;
  std::set<std::pair<uint32_t, uint64_t>> seen_;
};

// Creates rows of table "rows" by sending Updates of zeros as the last rank.
class RowMaker {
 public:
  RowMaker(rpc::Handler* ps, int ranks) : ps_(ps), rank_(ranks - 1) {}

  void Make(const Envelope& envelope, const std::vector<uint64_t>& keys) {
    if (keys.empty()) return;
    UpdateHeader update;
    *update.mutable_envelope() = envelope;
    // The sender must be some rank, because a PS knows no other senders. An ordered PS would wait
    // for the Updates of the other ranks, so this is for unordered worlds.
    update.mutable_call()->set_sender(rank_);
    update.mutable_call()->set_number(kFirstPlantedNumber + count_++);
    update.mutable_call()->set_oldest_open(1);
    update.mutable_step()->set_normalizer(1);
    update.set_dtype(F32);
    TableUpdate* table = update.add_tables();
    table->set_table(1);
    table->set_num_keys(keys.size());
    table->set_row_values(kRowValues);
    rpc::PayloadBuilder builder;
    builder.Reserve<uint64_t>(keys.size(), table->mutable_keys());
    builder.Reserve(F32, keys.size() * kRowValues, table->mutable_gradients());
    builder.Allocate();
    std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(table->keys()).begin());
    for (float& gradient : builder.Fill<float>(table->gradients())) gradient = 0;
    ps_->Handle(rpc::kUpdate, {update.SerializeAsString(), builder.Take()}, IgnoreAnswer);
  }

 private:
  rpc::Handler* const ps_;
  const int rank_;
  uint64_t count_ = 0;
};

template <typename Tables>
std::vector<uint64_t> KeysOfRows(const Tables& tables, const Buffer& payload) {
  std::vector<uint64_t> all;
  if (payload.empty()) return all;  // no keys
  for (const auto& table : tables) {
    if (table.table() != 1) continue;
    const auto keys = rpc::SectionView<uint64_t>(payload, table.keys(), table.num_keys(), "keys");
    CHECK_OK(keys.status());
    all.insert(all.end(), keys->begin(), keys->end());
  }
  return all;
}

class RowCreatingLookup final : public rpc::Handler {
 public:
  RowCreatingLookup(rpc::Handler* ps, int ranks) : ps_(ps), rows_(ps, ranks) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) {
      LookupHeader lookup;
      CHECK(lookup.ParseFromString(request.header));
      // Runs before the Lookup, which then finds rows. Most still have their initial values, so
      // only the presence and the number of rows show it.
      rows_.Make(lookup.envelope(), KeysOfRows(lookup.tables(), request.payload));
    }
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const ps_;
  RowMaker rows_;
};

class LaterRowsKept final : public rpc::Handler {
 public:
  LaterRowsKept(rpc::Handler* ps, int ranks) : ps_(ps), rows_(ps, ranks) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kUpdate) {
      UpdateHeader update;
      CHECK(update.ParseFromString(request.header));
      envelope_ = update.envelope();
      for (const uint64_t key : KeysOfRows(update.tables(), request.payload)) {
        // Any of the cuts may be loaded later.
        for (auto& [directory, later] : later_) later.insert(key);
      }
    } else if (method == rpc::kBeginCut) {
      BeginCutRequest begin;
      CHECK(begin.ParseFromString(request.header));
      later_[begin.directory()].clear();
    } else if (method == rpc::kLoadTables) {
      LoadTablesRequest load;
      CHECK(load.ParseFromString(request.header));
      respond = [this, respond = std::move(respond),
                 directory = load.directory()](absl::StatusOr<rpc::Message> answer) mutable {
        const std::set<uint64_t>& later = later_[directory];
        rows_.Make(envelope_, {later.begin(), later.end()});
        respond(std::move(answer));
      };
    }
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const ps_;
  RowMaker rows_;
  Envelope envelope_;
  std::map<std::string, std::set<uint64_t>> later_;  // rows updated later than that saved folder
};

// All lookups and updates agree on the wrong keys, so training goes well. Only another program, or
// the next version, would not find its rows.
class OtherKeys final : public rpc::Handler {
 public:
  explicit OtherKeys(rpc::Handler* ps) : ps_(ps) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) ChangeKeys<LookupHeader>(&request);
    if (method == rpc::kUpdate) ChangeKeys<UpdateHeader>(&request);
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  // Attempts of a call share one payload, so the changed keys go into a copy.
  template <typename Header>
  static void ChangeKeys(rpc::Message* request) {
    Header header;
    CHECK(header.ParseFromString(request->header));
    if (request->payload.empty()) return;
    Buffer copy(request->payload.size());
    std::memcpy(copy.mutable_data(), request->payload.data(), copy.size());
    for (const auto& table : header.tables()) {
      for (uint64_t& key :
           copy.MutableView<uint64_t>(table.keys().offset_bytes(), table.num_keys())) {
        key ^= 1;
      }
    }
    request->payload = std::move(copy);
  }

  rpc::Handler* const ps_;
};

class EarlyEpochEnds final : public rpc::Handler {
 public:
  EarlyEpochEnds(rpc::Handler* worker, int loaders) : worker_(worker), loaders_(loaders) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    PutBatchHeader header;
    if (method == rpc::kPutBatch) CHECK(header.ParseFromString(request.header));
    if (!(method == rpc::kPutBatch) || header.has_part()) {
      worker_->Handle(method, std::move(request), std::move(respond));
      return;
    }
    // The engine believes that all loaders have ended the epoch, but parts of the slower ones still
    // come.
    const bool is_first = ended_.emplace(header.stream(), header.epoch()).second;
    for (int loader = 0; is_first && loader < loaders_; ++loader) {
      header.mutable_call()->set_sender(loader);
      header.mutable_call()->set_number(kFirstPlantedNumber + count_++);
      header.mutable_call()->set_oldest_open(1);
      worker_->Handle(method, {header.SerializeAsString(), Buffer()}, IgnoreAnswer);
    }
    respond(DoneMessage());
  }

 private:
  rpc::Handler* const worker_;
  const int loaders_;
  std::set<std::pair<int, uint32_t>> ended_;  // stream and epoch
  uint64_t count_ = 0;
};

// One rank's pushes, over all its channels, that wait for an answer, by number.
struct OpenPushes {
  std::map<uint64_t, rpc::Callback> open;

  void AnswerOldest() {
    if (open.empty()) return;
    rpc::Callback done = std::move(open.begin()->second);
    open.erase(open.begin());
    done(DoneMessage());
  }
};

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
                     // The push itself always arrives: the fault is when its permit returns, not a
                     // lost push.
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

class OtherPartRequests final : public rpc::Channel {
 public:
  OtherPartRequests(rpc::Channel* channel, int part) : channel_(channel), part_(part) {}

  void Call(const rpc::Method& method, rpc::Message request, int64_t timeout_ms,
            rpc::Callback done) override {
    if (method == rpc::kNextBatch) {
      NextBatchHeader header;
      CHECK(header.ParseFromString(request.header));
      // Every part is still trained once, but by the wrong rank: sums are right, parts are not.
      if (header.has_wanted()) header.mutable_wanted()->set_part(part_);
      request.header = header.SerializeAsString();
    }
    channel_->Call(method, std::move(request), timeout_ms, std::move(done));
  }

 private:
  rpc::Channel* const channel_;
  const int part_;
};

}  // namespace

rpc::Message DoneMessage() {
  CallOutcome done;
  done.set_outcome(OUTCOME_DONE);
  return {done.SerializeAsString(), Buffer()};
}

void GiveNewNumber(const rpc::Method& method, rpc::Message* request, uint64_t number) {
  EditCall(method, request, [number](int, CallId* call) {
    call->set_number(number);
    call->set_oldest_open(1);
  });
}

std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* engine, const rpc::Method& method) {
  return std::make_unique<ForgetfulWindow>(engine, method);
}

std::unique_ptr<rpc::Handler> NewClosedCallsRun(rpc::Handler* engine) {
  return std::make_unique<ClosedCallsRun>(engine);
}

std::unique_ptr<rpc::Handler> NewSwallower(rpc::Handler* engine, const rpc::Method& method) {
  return std::make_unique<Swallower>(engine, method);
}

std::unique_ptr<rpc::Handler> NewEarlyAnswers(rpc::Handler* ps, const rpc::Method& method,
                                              SimLoop* loop) {
  return std::make_unique<EarlyAnswers>(ps, method, loop);
}

std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks) {
  return std::make_unique<RowCreatingLookup>(ps, ranks);
}

std::unique_ptr<rpc::Handler> NewLaterRowsKept(rpc::Handler* ps, int ranks) {
  return std::make_unique<LaterRowsKept>(ps, ranks);
}

std::unique_ptr<rpc::Handler> NewOtherKeys(rpc::Handler* ps) {
  return std::make_unique<OtherKeys>(ps);
}

std::unique_ptr<rpc::Handler> NewEarlyEpochEnds(rpc::Handler* worker, int loaders) {
  return std::make_unique<EarlyEpochEnds>(worker, loaders);
}

std::vector<std::unique_ptr<rpc::Channel>> NewMisansweredPushes(
    const std::vector<rpc::Channel*>& channels, bool out_of_order, SimLoop* loop) {
  auto pushes = std::make_shared<OpenPushes>();
  std::vector<std::unique_ptr<rpc::Channel>> made;
  for (rpc::Channel* channel : channels) {
    made.push_back(std::make_unique<MisansweredPushes>(channel, pushes, out_of_order, loop));
  }
  return made;
}

std::vector<std::unique_ptr<rpc::Channel>> NewOtherPartRequests(
    const std::vector<rpc::Channel*>& channels, int part) {
  std::vector<std::unique_ptr<rpc::Channel>> made;
  for (rpc::Channel* channel : channels) {
    made.push_back(std::make_unique<OtherPartRequests>(channel, part));
  }
  return made;
}

}  // namespace satrap::simulation
