#include "embedding_ps/ps_engine.h"

#include <bitset>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/chunk/chunk.h"
#include "common/learning_rate/batch_scaling.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "common/rpc/receivers.h"
#include "embedding_ps/preload.h"
#include "embedding_ps/request/decoded_lookup.h"
#include "embedding_ps/table_sweep.h"

namespace satrap {
namespace {

rpc::CallReceiver::Options ReceiverOptions(const PsEngine::Options& options, int num_senders,
                                           rpc::Keeping keeping) {
  return rpc::ReceiverOptions(absl::StrCat("embedding_ps ", options.index), options.envelope,
                              num_senders, options.timeouts, keeping);
}

// Options for methods that only rank 0 calls.
rpc::CallReceiver::Options RankZero(const PsEngine::Options& options) {
  return ReceiverOptions(options, /*num_senders=*/1, rpc::Keeping::kUntilClosed);
}

CutWriter::Options CutOptions(const JobConfig& job, const PsEngine::Options& options,
                              absl::Span<const std::unique_ptr<EmbeddingTable>> tables) {
  CutWriter::Options cut;
  for (const auto& table : tables) cut.tables.push_back(table.get());
  cut.copy_bytes = job.checkpoint().copy_bytes();
  cut.threads = job.embedding_ps().threads();
  cut.executor = options.disk_executor;
  cut.file_system = options.file_system;
  cut.kill_points = options.kill_points;
  return cut;
}

absl::Status CheckStep(const StepHeader& step) {
  if (!(step.normalizer() > 0 && std::isfinite(step.normalizer()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("step.normalizer: must be positive and finite, got ", step.normalizer()));
  }
  const float factor = step.learning_rate_factor();
  if (!(factor >= 0 && std::isfinite(factor))) {
    return absl::InvalidArgumentError(
        absl::StrCat("step.learning_rate_factor: must be finite and not negative, got ", factor));
  }
  return absl::OkStatus();
}

// Only the tables know whether their rules need sample counts or shares. The configuration does not
// say it.
TableOwnership OwnershipOf(const JobConfig& job, int ps_index,
                           absl::Span<const std::unique_ptr<EmbeddingTable>> tables) {
  TableOwnership ownership = TableOwnership::Of(job, ps_index);
  for (size_t i = 0; i < tables.size(); ++i) {
    ownership.tables[i].needs_sample_counts = tables[i]->needs_sample_counts();
    ownership.tables[i].needs_part_share = tables[i]->needs_part_share();
  }
  return ownership;
}

uint64_t CountBits(absl::Span<const uint8_t> bytes) {
  uint64_t count = 0;
  for (const uint8_t byte : bytes) count += std::bitset<8>(byte).count();
  return count;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PsEngine>> PsEngine::Create(const JobConfig& job,
                                                           const Options& options) {
  std::vector<std::unique_ptr<EmbeddingTable>> tables;
  for (const TableConfig& config : job.tables()) {
    EmbeddingTable::Options table_options;
    table_options.seed = job.seed();
    table_options.shards = job.embedding_ps().shards();
    table_options.reserve_rows = config.reserve_rows() / job.embedding_ps().replicas();
    table_options.first_step = static_cast<int64_t>(options.first_step);
    for (const FrozenSteps& frozen : options.frozen_steps) {
      if (frozen.table() == config.id()) {
        table_options.frozen_steps = static_cast<int64_t>(frozen.steps());
      }
    }
    table_options.new_optimizer = options.new_optimizer;
    const TableOwnership::Partitions owned =
        TableOwnership::PartitionsOf(options.index, job.embedding_ps().replicas());
    table_options.first_partition = owned.first;
    table_options.last_partition = owned.last;
    ASSIGN_OR_RETURN(std::unique_ptr<EmbeddingTable> table,
                     EmbeddingTable::Create(EffectiveTable(job, config), table_options));
    tables.push_back(std::move(table));
  }
  return std::unique_ptr<PsEngine>(new PsEngine(job, options, std::move(tables)));
}

PsEngine::PsEngine(const JobConfig& job, const Options& options,
                   std::vector<std::unique_ptr<EmbeddingTable>> tables)
    : job_(job),
      options_(options),
      ownership_(OwnershipOf(job, options.index, tables)),
      ordered_(job.mode() == JobConfig::SYNC),
      tables_(std::move(tables)),
      // A Lookup changes nothing, and its answer is large. So an answer is kept only until it is
      // delivered, and a repeated call may run again.
      lookup_receiver_(ReceiverOptions(options, job.embedding_worker().replicas(),
                                       rpc::Keeping::kUntilDelivered),
                       options.executor),
      update_receiver_(
          ReceiverOptions(options, job.nn_worker().replicas(), rpc::Keeping::kUntilClosed),
          options.executor),
      apply_receiver_(
          ReceiverOptions(options, job.nn_worker().replicas(), rpc::Keeping::kUntilClosed),
          options.executor),
      begin_cut_receiver_(RankZero(options), options.executor),
      await_cut_receiver_(RankZero(options), options.executor),
      abandon_cut_receiver_(RankZero(options), options.executor),
      load_receiver_(RankZero(options), options.executor),
      cuts_(CutOptions(job, options, tables_)),
      collector_(job.nn_worker().replicas(), options.first_step),
      applied_steps_(options.first_step) {
  CHECK(options_.executor != nullptr && options_.disk_executor != nullptr);
}

template <typename Header, rpc::CallReceiver PsEngine::*receiver, auto run>
void PsEngine::Receive(rpc::Message request, rpc::Callback respond) {
  rpc::CallReceiver& calls = this->*receiver;
  calls.Receive<Header>(std::move(request), std::move(respond),
                        [this](const rpc::PendingAnswer& call, Header header, Buffer payload) {
                          (this->*run)(call, std::move(header), std::move(payload));
                        });
}

void PsEngine::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  using Engine = PsEngine;
  struct Served {
    rpc::Method method;
    void (Engine::*receive)(rpc::Message request, rpc::Callback respond);
  };
  // Lookups are numbered although they change nothing. This has two advantages: a slow Lookup is
  // answered WAIT, which shows that the PS is alive; and it runs only once, however often it is
  // repeated meanwhile. TableStats is not numbered: it is quick, and may run again.
  static constexpr Served kServed[] = {
      {rpc::kUpdate, &Engine::Receive<UpdateHeader, &Engine::update_receiver_, &Engine::OnUpdate>},
      {rpc::kApplyStep,
       &Engine::Receive<ApplyStepHeader, &Engine::apply_receiver_, &Engine::OnApplyStep>},
      {rpc::kLookup, &Engine::Receive<LookupHeader, &Engine::lookup_receiver_, &Engine::OnLookup>},
      {rpc::kBeginCut,
       &Engine::Receive<BeginCutRequest, &Engine::begin_cut_receiver_, &Engine::OnBeginCut>},
      {rpc::kAwaitCut,
       &Engine::Receive<AwaitCutRequest, &Engine::await_cut_receiver_, &Engine::OnAwaitCut>},
      {rpc::kAbandonCut,
       &Engine::Receive<AbandonCutRequest, &Engine::abandon_cut_receiver_, &Engine::OnAbandonCut>},
      {rpc::kLoadTables,
       &Engine::Receive<LoadTablesRequest, &Engine::load_receiver_, &Engine::OnLoadTables>},
      {rpc::kTableStats, &Engine::OnTableStats},
  };
  for (const Served& served : kServed) {
    if (served.method == method) {
      return (this->*served.receive)(std::move(request), std::move(respond));
    }
  }
  respond(absl::UnimplementedError(absl::StrCat("the embedding PS has no method ", method.path)));
}

void PsEngine::OnLookup(const rpc::PendingAnswer& call, LookupHeader header, Buffer payload) {
  options_.executor->Post([this, call, header = std::move(header), payload = std::move(payload)] {
    call.Finish(Lookup(header, payload));
  });
}

absl::StatusOr<rpc::Message> PsEngine::Lookup(const LookupHeader& header, const Buffer& payload) {
  if (header.has_step()) {
    MutexLock lock(&mutex_);
    if (header.step() != applied_steps_) {
      return absl::InvalidArgumentError(
          absl::StrCat("step: a Lookup of step ", header.step(), " requires that exactly ",
                       header.step(), " steps are applied, but ", applied_steps_, " are"));
    }
  }
  LookupAnswerHeader answer;
  answer.set_outcome(OUTCOME_DONE);
  const WireDtype dtype = job_.embedding_ps().wire_dtype();
  answer.set_dtype(dtype);
  // Check the whole request before anything is allocated for its answer.
  ASSIGN_OR_RETURN(const std::vector<TableLookup> lookups,
                   DecodeLookup(header, payload, ownership_, dtype, rpc::kLargestMessageBytes));
  // The layout of the answer: for each table a section of values and one of presence bits.
  rpc::PayloadBuilder builder;
  for (const TableLookup& lookup : lookups) {
    const TableOwnership::Table& table = ownership_.tables[lookup.table];
    TableValues* to = answer.add_tables();
    to->set_table(table.id);
    to->set_num_keys(lookup.keys.size());
    to->set_row_values(table.row_values);
    builder.Reserve(dtype, lookup.keys.size() * table.row_values, to->mutable_values());
    builder.Reserve<uint8_t>((lookup.keys.size() + 7) / 8, to->mutable_presence());
  }
  builder.Allocate();
  // Read the rows: f32 values directly into the answer, 16-bit values through `wide`. A table locks
  // one shard at a time, so Updates can run in between.
  const AbsentRows absent = header.training() ? AbsentRows::kInitialValues : AbsentRows::kZeros;
  std::vector<float> wide;
  for (int i = 0; i < answer.tables_size(); ++i) {
    TableValues& to = *answer.mutable_tables(i);
    const absl::Span<const uint64_t> keys = lookups[i].keys;
    const EmbeddingTable& table = *tables_[lookups[i].table];
    const absl::Span<uint8_t> presence = builder.Fill<uint8_t>(to.presence());
    if (dtype == F32) {
      table.Lookup(keys, absent, builder.Fill<float>(to.values()), presence);
    } else {
      wide.resize(keys.size() * to.row_values());
      table.Lookup(keys, absent, absl::MakeSpan(wide), presence);
      builder.Encode(wide, dtype, to.mutable_values());
    }
    lookup_keys_ += keys.size();
    absent_keys_ += keys.size() - CountBits(presence);
  }
  rpc::Message message = rpc::MessageOf(answer);
  message.payload = builder.Take();
  return message;
}

void PsEngine::OnUpdate(const rpc::PendingAnswer& call, UpdateHeader header, Buffer payload) {
  Task update = [this, call, header = std::move(header), payload = std::move(payload)]() mutable {
    RunUpdate(call, std::move(header), std::move(payload));
  };
  UpdateGate::Admission admission;
  {
    MutexLock lock(&mutex_);
    admission = gate_.Admit(&update);
  }
  if (admission == UpdateGate::Admission::kRun) {
    options_.executor->Post(std::move(update));
  } else if (admission == UpdateGate::Admission::kRefused) {
    FinishUpdate(call, absl::InvalidArgumentError(
                           "Update refused: the tables are being loaded, or failed to load"));
  }
}

void PsEngine::RunUpdate(const rpc::PendingAnswer& call, UpdateHeader header, Buffer payload) {
  absl::StatusOr<DecodedUpdate> update = DecodeUpdate(header, payload, ownership_);
  absl::Status invalid = update.status();
  if (invalid.ok()) invalid = CheckStep(header.step());
  if (header.ordered() != ordered_) {
    invalid = absl::InvalidArgumentError("ordered: differs from the job's mode");
  }
  if (!invalid.ok()) {
    FinishUpdate(call, invalid);
  } else if (ordered_) {
    UpdateOrdered(call, header, *std::move(update));
  } else {
    UpdateUnordered(call, header, *update);
  }
}

void PsEngine::UpdateUnordered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                               const DecodedUpdate& update) {
  if (header.step().finite()) {
    for (const TableGradient& table : update.tables) {
      Apply(ContextOf(header.step(), update.part_share), table.table, table.keys, table.gradients,
            table.sample_counts);
    }
  }
  ++updates_;
  data_time_.Add(update.data_time_ms);
  FinishUpdate(call, rpc::Done<UpdateAnswerHeader>());
}

void PsEngine::FinishUpdate(const rpc::PendingAnswer& call, absl::StatusOr<rpc::Message> answer) {
  {
    // The Update is counted as answered before the answer is sent. Otherwise, if a caller has the
    // answer and requests a load at once, the load might be refused because the Update still counts
    // as open.
    MutexLock lock(&mutex_);
    gate_.Finish();
  }
  call.Finish(std::move(answer));
}

void PsEngine::UpdateOrdered(const rpc::PendingAnswer& call, const UpdateHeader& header,
                             DecodedUpdate update) {
  absl::optional<StepCollector::Complete> complete;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    // With gradient_clip_norm all parts of a step are answered before the step is applied, so a
    // rank could send its next Update too early. Without gradient_clip_norm this cannot happen.
    if (applied_steps_ < collector_.step()) {
      status = absl::InvalidArgumentError(absl::StrCat("step.step: an Update arrived while step ",
                                                       applied_steps_,
                                                       " was still waiting for its clip_factor"));
    } else {
      status = collector_.Add(header.step(), header.part(), {std::move(update), call});
    }
    if (status.ok()) complete = collector_.TakeIfComplete();
  }
  if (!status.ok()) {
    FinishUpdate(call, status);
    return;
  }
  if (!complete.has_value()) return;
  // This runs once for each step, on the thread that brought its last part. No other step can be in
  // progress: a rank sends the Update of the next step only after its Update of this one is
  // answered.
  std::vector<rpc::PendingAnswer> calls;
  for (const StepCollector::Part& part : complete->parts) calls.push_back(part.call);
  absl::StatusOr<StepSum> sum = SumStep(*std::move(complete), ownership_);
  if (!sum.ok()) {
    // The step is not applied for any rank, so every rank gets the error.
    for (const rpc::PendingAnswer& part : calls) FinishUpdate(part, sum.status());
    return;
  }
  if (job_.gradient_clip_norm() > 0 && sum->header.finite())
    return AnswerWithSquares(*std::move(sum));
  ApplySum(*std::move(sum), /*clip_factor=*/1, [this](const StepSum& applied) {
    for (const StepCollector::Part& part : applied.parts) {
      FinishUpdate(part.call, rpc::Done<UpdateAnswerHeader>());
    }
  });
}

// `part_share` is 1 if all parts of a step are applied at once.
StepContext PsEngine::ContextOf(const StepHeader& header, double part_share) {
  StepContext context;
  context.step = static_cast<int64_t>(header.step());
  context.finite = header.finite();
  context.normalizer = header.normalizer();
  context.learning_rate_factor = header.learning_rate_factor();
  context.part_share = part_share;
  return context;
}

// A step that is not finite changes no values but counts as applied.
void PsEngine::ApplySum(StepSum sum, float clip_factor,
                        absl::AnyInvocable<void(const StepSum&)> done) {
  StepContext context = ContextOf(sum.header, /*part_share=*/1);
  context.clip_factor = clip_factor;
  for (const TableGradient& table : sum.tables) {
    Apply(context, table.table, table.keys, table.gradients, table.sample_counts);
  }
  // Rows that the step does not hold are swept last, but before the answers are sent, so that
  // Lookups of the next step see them swept.
  SweepTables(tables_, context, job_.embedding_ps().threads(), options_.executor,
              [this, sum = std::move(sum), done = std::move(done)]() mutable {
                updates_ += sum.parts.size();
                for (const auto& part : sum.parts) data_time_.Add(part.update.data_time_ms);
                // The step is counted before any answer is sent. A rank that has its answer may at
                // once send a Lookup of the next step, which is refused unless this step is
                // counted.
                {
                  MutexLock lock(&mutex_);
                  ++applied_steps_;
                }
                done(sum);
              });
}

void PsEngine::Apply(const StepContext& context, int table, absl::Span<const uint64_t> keys,
                     absl::Span<const float> gradients, absl::Span<const uint32_t> sample_counts) {
  rows_created_ += tables_[table]->Update(keys, gradients, sample_counts, context);
  if (!tables_[table]->config().frozen()) update_keys_ += keys.size();
}

void PsEngine::Preload() {
  std::vector<EmbeddingTable*> tables;
  for (const auto& table : tables_) tables.push_back(table.get());
  PreloadRows(job_, options_.index, tables);
}

void PsEngine::OnTableStats(rpc::Message request, rpc::Callback respond) {
  options_.executor->Post(
      [this, request = std::move(request), respond = std::move(respond)]() mutable {
        respond(AnswerStats(request));
      });
}

absl::StatusOr<rpc::Message> PsEngine::AnswerStats(const rpc::Message& request) {
  ASSIGN_OR_RETURN(const TableStatsRequest header,
                   rpc::ParseHeader<TableStatsRequest>(request.header));
  RETURN_IF_ERROR(rpc::CheckEnvelope(header.envelope(), options_.envelope,
                                     absl::StrCat("embedding_ps ", options_.index)));
  TableStatsAnswer answer;
  for (const TableStats& stats : Stats()) *answer.add_tables() = stats;
  return rpc::MessageOf(answer);
}

PsEngine::Counts PsEngine::counts() const {
  return {lookup_keys_.load(),  absent_keys_.load(), updates_.load(), update_keys_.load(),
          rows_created_.load(), data_time_.Get(),    cuts_.counts()};
}

std::vector<TableStats> PsEngine::Stats() const {
  std::vector<TableStats> all;
  for (const auto& table : tables_) {
    TableStats stats;
    stats.set_name(table->config().name());
    stats.set_rows(table->rows());
    stats.set_bytes(table->bytes());
    all.push_back(stats);
  }
  return all;
}

}  // namespace satrap
