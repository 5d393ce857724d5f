// Faults of embedding tables: PSs with another job, and handlers before a PS that change rows and
// keys.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "proto/control.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

// Creates rows of table "rows" by sending Updates of zeros in the name of the last rank. For
// unordered worlds only.
class RowMaker : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;

 protected:
  void Make(const Envelope& envelope, const std::vector<uint64_t>& keys) {
    if (keys.empty()) return;
    UpdateHeader update;
    *update.mutable_envelope() = envelope;
    // The sender must be a rank, because a PS knows no other senders. An ordered PS would wait for
    // the Updates of the other ranks.
    SetCall(update.mutable_call(), site_.shape->ranks - 1, kFirstPlantedNumber + count_++);
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
    Pass(rpc::kUpdate, {update.SerializeAsString(), builder.Take()}, ExpectNoError);
  }

 private:
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

// Before each Lookup, sends an Update of zeros for those keys of the Lookup that belong to table
// "rows", which creates their rows. Most of these rows keep their initial values, so only the
// presence and the number of rows show the fault.
class RowCreatingLookup final : public RowMaker {
 public:
  using RowMaker::RowMaker;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) {
      const auto lookup = HeaderOf<LookupHeader>(request);
      Make(lookup.envelope(), KeysOfRows(lookup.tables(), request.payload));
    }
    Pass(method, std::move(request), std::move(respond));
  }
};

// After LoadTables, creates again the rows that were updated since the BeginCut of the loaded cut.
class LaterRowsKept final : public RowMaker {
 public:
  using RowMaker::RowMaker;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kUpdate) {
      const auto update = HeaderOf<UpdateHeader>(request);
      envelope_ = update.envelope();
      for (const uint64_t key : KeysOfRows(update.tables(), request.payload)) {
        // Any of the cuts may be loaded later.
        for (auto& [directory, later] : later_) later.insert(key);
      }
    } else if (method == rpc::kBeginCut) {
      later_[HeaderOf<BeginCutRequest>(request).directory()].clear();
    } else if (method == rpc::kLoadTables) {
      respond = [this, respond = std::move(respond),
                 directory = HeaderOf<LoadTablesRequest>(request).directory()](
                    absl::StatusOr<rpc::Message> answer) mutable {
        const std::set<uint64_t>& later = later_[directory];
        Make(envelope_, {later.begin(), later.end()});
        respond(std::move(answer));
      };
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  Envelope envelope_;
  std::map<std::string, std::set<uint64_t>> later_;  // rows updated later than that saved folder
};

// Replaces every key of Lookup and Update by another key, through a bijection that keeps the
// partition. All lookups and updates agree on the wrong keys, so training succeeds. But another
// program, or the next version of this one, would not find its rows.
class OtherKeys final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kLookup) ChangeKeys<LookupHeader>(&request);
    if (method == rpc::kUpdate) ChangeKeys<UpdateHeader>(&request);
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  // Attempts of a call share one payload, so the changed keys go into a copy.
  template <typename Header>
  static void ChangeKeys(rpc::Message* request) {
    const auto header = HeaderOf<Header>(*request);
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
};

// A fault in the tables of the job that PSs are made with.
template <typename Change>
auto OfTables(Change change) {
  return [change](const Site& site, JobConfig* job) {
    if (site.role != EMBEDDING_PS) return;
    for (TableConfig& table : *job->mutable_tables()) change(&table);
  };
}
template <typename Change>
auto OfSegments(Change change) {
  return OfTables([change](TableConfig* table) {
    for (SegmentConfig& segment : *table->mutable_segments()) change(&segment);
  });
}

void ForgetSweep(TableConfig* table) {
  table->clear_semantics();
  for (SegmentConfig& segment : *table->mutable_segments()) {
    if (segment.l2_mode() != SegmentConfig::DENSE) continue;
    // L2 of mode DENSE is valid only with semantics GLOBAL, which was just cleared. Rows without L2
    // have the same layout.
    segment.clear_l2_mode();
    segment.clear_l2();
  }
}

}  // namespace

std::vector<Fault> TableFaults() {
  return {
      {.says = "a Lookup creates rows",
       .worlds = Fault::kHybrid,
       .before_ps = Before<RowCreatingLookup>()},
      {.says = "rows made after the best model stay at its loading",
       .worlds = Fault::kHybrid,
       .before_ps = Before<LaterRowsKept>()},
      {.says = "ids are mixed consistently into other keys", .before_ps = Before<OtherKeys>()},
      {.says = "PSs leave L2 out",
       .job = OfSegments([](SegmentConfig* segment) { segment->clear_l2(); })},
      {.says = "PSs do not clip gradients",
       .job = OfSegments([](SegmentConfig* segment) { segment->clear_gradient_clip_norm(); })},
      {.says = "PSs do not bound weights",
       .job = OfSegments([](SegmentConfig* segment) { segment->clear_weight_bound(); })},
      // This makes steps larger. No message or count shows the fault, only the values of rows.
      {.says = "Adagrad's accumulators begin at another value",
       .job = OfSegments([](SegmentConfig* segment) {
         SparseOptimizerConfig* optimizer = segment->mutable_optimizer();
         if (!optimizer->has_adagrad()) return;
         optimizer->mutable_adagrad()->set_initial_accumulator(0);
       })},
      {.says = "PSs step only the rows that a step holds",
       .worlds = Fault::kSync,
       .job = OfTables(ForgetSweep)},
      {.says = "PSs step the rows of frozen tables",
       .job = OfTables([](TableConfig* table) { table->clear_frozen(); })},
      // The job has the number of PSs that the run had before its first scale. So a PS with this
      // job gets keys of partitions that it does not own.
      {.says = "PSs have the job that a scale has replaced",
       .with_deaths = true,
       .job =
           [](const Site& site, JobConfig* job) {
             if (site.role != EMBEDDING_PS) return;
             job->mutable_embedding_ps()->set_replicas(WorldShape::Draw(site.shape->seed).ps);
           }},
  };
}

}  // namespace satrap::simulation
