#include "tests/simulation/sim_plants.h"

#include <utility>

#include "common/check.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "proto/hot.pb.h"
#include "tests/simulation/sim_data.h"

namespace satrap::simulation {
namespace {

template <typename Header>
void Renumber(uint64_t* last_number, rpc::Message* request) {
  Header header;
  CHECK(header.ParseFromString(request->header));
  header.mutable_call()->set_number(++*last_number);
  header.mutable_call()->set_oldest_open(1);
  request->header = header.SerializeAsString();
}

class ForgetfulWindow final : public rpc::Handler {
 public:
  ForgetfulWindow(rpc::Handler* engine, const rpc::Method& method)
      : engine_(engine), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_ && method == rpc::kUpdate) {
      Renumber<UpdateHeader>(&last_number_, &request);
    } else if (method == method_ && method == rpc::kPutBatch) {
      Renumber<PutBatchHeader>(&last_number_, &request);
    }
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  const rpc::Method method_;
  uint64_t last_number_ = 0;  // of all senders
};

class Swallower final : public rpc::Handler {
 public:
  Swallower(rpc::Handler* engine, const rpc::Method& method) : engine_(engine), method_(method) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (!(method == method_)) {
      engine_->Handle(method, std::move(request), std::move(respond));
      return;
    }
    CallOutcome done;
    done.set_outcome(OUTCOME_DONE);
    respond(rpc::Message{done.SerializeAsString(), Buffer()});
  }

 private:
  rpc::Handler* const engine_;
  const rpc::Method method_;
};

class TrainingLookups final : public rpc::Handler {
 public:
  explicit TrainingLookups(rpc::Handler* ps) : ps_(ps) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) {
      LookupHeader header;
      CHECK(header.ParseFromString(request.header));
      header.set_training(true);
      request.header = header.SerializeAsString();
    }
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const ps_;
};

class RowCreatingLookup final : public rpc::Handler {
 public:
  RowCreatingLookup(rpc::Handler* ps, int ranks) : ps_(ps), rank_(ranks - 1) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) CreateRows(request);
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  // Rows are created under the last rank's name, with numbers above those of its own calls.
  static constexpr uint64_t kFirstNumber = uint64_t{1} << 40;

  void CreateRows(const rpc::Message& request) {
    LookupHeader lookup;
    CHECK(lookup.ParseFromString(request.header));
    for (const TableKeys& asked : lookup.tables()) {
      if (asked.table() != 1) continue;
      const auto keys =
          rpc::SectionView<uint64_t>(request.payload, asked.keys(), asked.num_keys(), "keys");
      CHECK_OK(keys.status());
      UpdateHeader update;
      *update.mutable_envelope() = lookup.envelope();
      update.mutable_call()->set_sender(rank_);
      update.mutable_call()->set_number(kFirstNumber + count_++);
      update.mutable_call()->set_oldest_open(1);
      update.mutable_step()->set_normalizer(1);
      update.set_dtype(F32);
      TableUpdate* table = update.add_tables();
      table->set_table(1);
      table->set_num_keys(keys->size());
      table->set_row_values(kRowValues);
      rpc::PayloadBuilder builder;
      builder.Reserve<uint64_t>(keys->size(), table->mutable_keys());
      builder.Reserve(F32, keys->size() * kRowValues, table->mutable_gradients());
      builder.Allocate();
      std::copy(keys->begin(), keys->end(), builder.Fill<uint64_t>(table->keys()).begin());
      for (float& gradient : builder.Fill<float>(table->gradients())) gradient = 0;
      ps_->Handle(rpc::kUpdate, {update.SerializeAsString(), builder.Take()},
                  [](absl::StatusOr<rpc::Message> answer) { CHECK_OK(answer.status()); });
    }
  }

  rpc::Handler* const ps_;
  const int rank_;
  uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* engine, const rpc::Method& method) {
  return std::make_unique<ForgetfulWindow>(engine, method);
}

std::unique_ptr<rpc::Handler> NewSwallower(rpc::Handler* engine, const rpc::Method& method) {
  return std::make_unique<Swallower>(engine, method);
}

std::unique_ptr<rpc::Handler> NewTrainingLookups(rpc::Handler* ps) {
  return std::make_unique<TrainingLookups>(ps);
}

std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks) {
  return std::make_unique<RowCreatingLookup>(ps, ranks);
}

}  // namespace satrap::simulation
