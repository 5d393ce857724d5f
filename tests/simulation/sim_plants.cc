#include "tests/simulation/sim_plants.h"

#include <map>
#include <utility>

#include "common/check.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "proto/hot.pb.h"
#include "tests/simulation/sim_data.h"

namespace satrap::simulation {
namespace {

class ForgetfulWindow final : public rpc::Handler {
 public:
  explicit ForgetfulWindow(rpc::Handler* ps) : ps_(ps) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kUpdate) {
      UpdateHeader header;
      CHECK(header.ParseFromString(request.header));
      header.mutable_call()->set_number(++next_[header.call().sender()]);
      header.mutable_call()->set_oldest_open(1);
      request.header = header.SerializeAsString();
    }
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const ps_;
  std::map<uint32_t, uint64_t> next_;  // by rank
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
      update.mutable_step()->set_global_weight(1);
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

std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* ps) {
  return std::make_unique<ForgetfulWindow>(ps);
}

std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks) {
  return std::make_unique<RowCreatingLookup>(ps, ranks);
}

}  // namespace satrap::simulation
