#include "embedding_ps/ps_engine.h"

#include <bitset>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/check.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/header.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "common/status_macros.h"
#include "embedding_ps/checkpoint/load_tables.h"
#include "embedding_ps/checkpoint/save_tables.h"
#include "embedding_ps/preload.h"

namespace satrap {
namespace {

rpc::Message UpdateDone() {
  UpdateAnswerHeader header;
  header.set_outcome(DONE);
  return rpc::MessageOf(header);
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
    ASSIGN_OR_RETURN(std::unique_ptr<EmbeddingTable> table,
                     EmbeddingTable::Create(config, table_options));
    tables.push_back(std::move(table));
  }
  return std::unique_ptr<PsEngine>(new PsEngine(job, options, std::move(tables)));
}

PsEngine::PsEngine(const JobConfig& job, const Options& options,
                   std::vector<std::unique_ptr<EmbeddingTable>> tables)
    : job_(job),
      options_(options),
      ownership_(TableOwnership::Of(job, options.index)),
      ordered_(job.mode() == JobConfig::SYNC),
      tables_(std::move(tables)),
      windows_(options.executor, options.timeouts.hold_ms * 1000),
      collector_(job.nn_worker().replicas()) {
  CHECK(options_.executor != nullptr && options_.disk_executor != nullptr);
}

void PsEngine::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  if (method == rpc::kUpdate) {
    Update(std::move(request), std::move(respond));
    return;
  }
  absl::StatusOr<rpc::Message> (PsEngine::*serve)(const rpc::Message&) = nullptr;
  if (method == rpc::kLookup) serve = &PsEngine::Lookup;
  if (method == rpc::kSaveTables) serve = &PsEngine::SaveTables;
  if (method == rpc::kLoadTables) serve = &PsEngine::LoadTables;
  if (method == rpc::kTableStats) serve = &PsEngine::AnswerStats;
  if (serve == nullptr) {
    respond(absl::UnimplementedError(absl::StrCat("the embedding PS has no method ", method.path)));
    return;
  }
  const bool is_disk_work = method == rpc::kSaveTables || method == rpc::kLoadTables;
  (is_disk_work ? options_.disk_executor : options_.executor)
      ->Post([this, serve, request = std::move(request), respond = std::move(respond)]() mutable {
        respond((this->*serve)(request));
      });
}

absl::Status PsEngine::CheckEnvelope(const Envelope& envelope) const {
  return rpc::CheckEnvelope(envelope, options_.envelope,
                            absl::StrCat("embedding PS ", options_.index));
}

absl::StatusOr<rpc::Message> PsEngine::Lookup(const rpc::Message& request) {
  ASSIGN_OR_RETURN(const LookupHeader header, rpc::ParseHeader<LookupHeader>(request.header));
  RETURN_IF_ERROR(CheckEnvelope(header.envelope()));
  if (header.has_step()) {
    MutexLock lock(&mutex_);
    if (header.step() != applied_steps_) {
      return absl::InvalidArgumentError(absl::StrCat("step: a Lookup of step ", header.step(),
                                                     " with ", applied_steps_, " steps applied"));
    }
  }
  LookupAnswerHeader answer;
  answer.set_outcome(DONE);
  const WireDtype dtype = job_.embedding_ps().wire_dtype();
  answer.set_dtype(dtype);
  std::vector<absl::Span<const uint64_t>> keys_of_table;
  std::vector<int> positions;
  rpc::PayloadBuilder builder;
  for (const TableKeys& from : header.tables()) {
    ASSIGN_OR_RETURN(const int position, ownership_.PositionOf(from.table()));
    ASSIGN_OR_RETURN(
        const absl::Span<const uint64_t> keys,
        rpc::SectionView<uint64_t>(request.payload, from.keys(), from.num_keys(), "tables.keys"));
    RETURN_IF_ERROR(ownership_.CheckOwned(keys));
    const int row_values = ownership_.tables[position].row_values;
    TableValues* to = answer.add_tables();
    to->set_table(from.table());
    to->set_num_keys(keys.size());
    to->set_row_values(row_values);
    builder.Reserve(dtype, keys.size() * row_values, to->mutable_values());
    builder.Reserve<uint8_t>((keys.size() + 7) / 8, to->mutable_presence());
    keys_of_table.push_back(keys);
    positions.push_back(position);
  }
  builder.Allocate();
  const AbsentRows absent = header.training() ? AbsentRows::kInitialValues : AbsentRows::kZeros;
  std::vector<float> wide;
  for (int i = 0; i < answer.tables_size(); ++i) {
    const TableValues& to = answer.tables(i);
    const size_t count = keys_of_table[i].size() * to.row_values();
    const absl::Span<uint8_t> presence = builder.Fill<uint8_t>(to.presence());
    if (dtype == F32) {
      tables_[positions[i]]->Lookup(keys_of_table[i], absent, builder.Fill<float>(to.values()),
                                    presence);
    } else {
      wide.resize(count);
      tables_[positions[i]]->Lookup(keys_of_table[i], absent, absl::MakeSpan(wide), presence);
      rpc::EncodeWire(wide, dtype, builder.Fill<uint8_t>(to.values()).data());
    }
    lookup_keys_ += keys_of_table[i].size();
    absent_keys_ += keys_of_table[i].size() - CountBits(presence);
  }
  rpc::Message message = rpc::MessageOf(answer);
  message.payload = builder.Take();
  return message;
}

void PsEngine::Update(rpc::Message request, rpc::Callback respond) {
  absl::StatusOr<UpdateHeader> header = rpc::ParseHeader<UpdateHeader>(request.header);
  absl::Status status = header.status();
  if (status.ok()) status = CheckEnvelope(header->envelope());
  if (status.ok() && header->ordered() != ordered_) {
    status = absl::InvalidArgumentError("ordered: differs from the job's mode");
  }
  if (status.ok() &&
      header->call().sender() >= static_cast<uint32_t>(job_.nn_worker().replicas())) {
    status =
        absl::InvalidArgumentError(absl::StrCat("call.sender: no rank ", header->call().sender()));
  }
  if (!status.ok()) {
    respond(std::move(status));
    return;
  }
  const CallId& call = header->call();
  rpc::AnswerWindow* window = windows_.Get(call.sender(), TRAIN_STREAM);
  if (window->Admit(call.number(), call.oldest_open(), std::move(respond)) ==
      rpc::Admission::kHandled)
    return;
  bool loading;
  {
    MutexLock lock(&mutex_);
    loading = loads_ > 0;
    ++open_updates_;
  }
  if (loading) {
    FinishUpdate(
        call.sender(), call.number(),
        absl::InvalidArgumentError("an Update while rows are being loaded, or could not be"));
    return;
  }
  options_.executor->Post(
      [this, header = *std::move(header), payload = std::move(request.payload)] {
        absl::StatusOr<DecodedUpdate> update = DecodeUpdate(header, payload, ownership_);
        absl::Status invalid = update.status();
        if (invalid.ok()) invalid = CheckStep(header.step());
        if (!invalid.ok()) {
          FinishUpdate(header.call().sender(), header.call().number(), invalid);
        } else if (ordered_) {
          UpdateOrdered(header, *std::move(update));
        } else {
          UpdateUnordered(header, *std::move(update));
        }
      });
}

void PsEngine::UpdateUnordered(const UpdateHeader& header, DecodedUpdate update) {
  if (header.step().finite()) {
    for (const TableGradient& table : update.tables) {
      Apply(header.step(), table.table, table.keys, table.gradients, table.sample_counts);
    }
  }
  ++updates_;
  FinishUpdate(header.call().sender(), header.call().number(), UpdateDone());
}

void PsEngine::FinishUpdate(uint32_t rank, uint64_t number, absl::StatusOr<rpc::Message> answer) {
  {
    MutexLock lock(&mutex_);
    --open_updates_;
  }
  windows_.Get(rank, TRAIN_STREAM)->Finish(number, std::move(answer));
}

void PsEngine::UpdateOrdered(const UpdateHeader& header, DecodedUpdate update) {
  absl::optional<StepCollector::Complete> complete;
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    StepCollector::Part part{std::move(update), header.call().sender(), header.call().number()};
    status = collector_.Add(header.step(), header.part(), std::move(part));
    if (status.ok()) complete = collector_.TakeIfComplete();
  }
  if (!status.ok()) {
    FinishUpdate(header.call().sender(), header.call().number(), status);
    return;
  }
  if (complete.has_value()) ApplyStep(*complete);
}

void PsEngine::ApplyStep(const StepCollector::Complete& step) {
  if (step.header.finite() && step.parts.size() == 1) {
    for (const TableGradient& table : step.parts[0].update.tables) {
      Apply(step.header, table.table, table.keys, table.gradients, table.sample_counts);
    }
  } else if (step.header.finite()) {
    for (const SummedTable& table : SumParts(step.parts, ownership_)) {
      Apply(step.header, table.table, table.keys, table.gradients, table.sample_counts);
    }
  }
  updates_ += step.parts.size();
  {
    MutexLock lock(&mutex_);
    ++applied_steps_;
  }
  for (const StepCollector::Part& part : step.parts) {
    FinishUpdate(part.rank, part.number, UpdateDone());
  }
}

void PsEngine::Apply(const StepHeader& header, int table, absl::Span<const uint64_t> keys,
                     absl::Span<const float> gradients, absl::Span<const uint32_t> sample_counts) {
  UpdateContext context;
  context.step = static_cast<int64_t>(header.step());
  context.global_weight = header.normalizer();
  context.learning_rate_factor = header.learning_rate_factor();
  rows_created_ += tables_[table]->Update(keys, gradients, sample_counts, context);
  update_keys_ += keys.size();
}

absl::StatusOr<rpc::Message> PsEngine::SaveTables(const rpc::Message& request) {
  ASSIGN_OR_RETURN(const SaveTablesRequest header,
                   rpc::ParseHeader<SaveTablesRequest>(request.header));
  RETURN_IF_ERROR(CheckEnvelope(header.envelope()));
  MutexLock lock(&disk_mutex_);
  SaveTablesAnswer answer;
  for (const auto& table : tables_) {
    ASSIGN_OR_RETURN(
        const std::vector<SavedFile> files,
        satrap::SaveTable(*table, options_.index, ownership_.num_ps, header.directory()));
    for (const SavedFile& file : files) *answer.add_files() = file;
  }
  return rpc::MessageOf(answer);
}

absl::StatusOr<rpc::Message> PsEngine::LoadTables(const rpc::Message& request) {
  ASSIGN_OR_RETURN(const LoadTablesRequest header,
                   rpc::ParseHeader<LoadTablesRequest>(request.header));
  RETURN_IF_ERROR(CheckEnvelope(header.envelope()));
  {
    MutexLock lock(&mutex_);
    if (open_updates_ > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("rows cannot be loaded while ", open_updates_, " Updates are outstanding"));
    }
    ++loads_;
  }
  // After an error the tables are not a model's: no Update may build on them.
  RETURN_IF_ERROR(Load(header.directory()));
  {
    MutexLock lock(&mutex_);
    --loads_;
  }
  return rpc::MessageOf(LoadTablesAnswer());
}

void PsEngine::Preload() {
  std::vector<EmbeddingTable*> tables;
  for (const auto& table : tables_) tables.push_back(table.get());
  PreloadRows(job_, options_.index, tables);
}

absl::Status PsEngine::Load(const std::string& directory) {
  MutexLock lock(&disk_mutex_);
  std::vector<EmbeddingTable*> tables;
  for (const auto& table : tables_) tables.push_back(table.get());
  return satrap::LoadTables(directory, options_.index, ownership_.num_ps, tables);
}

absl::StatusOr<rpc::Message> PsEngine::AnswerStats(const rpc::Message& request) {
  ASSIGN_OR_RETURN(const TableStatsRequest header,
                   rpc::ParseHeader<TableStatsRequest>(request.header));
  RETURN_IF_ERROR(CheckEnvelope(header.envelope()));
  TableStatsAnswer answer;
  for (const TableStats& stats : Stats()) *answer.add_tables() = stats;
  return rpc::MessageOf(answer);
}

PsEngine::Counts PsEngine::counts() const {
  return {lookup_keys_.load(), absent_keys_.load(), updates_.load(), update_keys_.load(),
          rows_created_.load()};
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
