#include "embedding_worker/testing/engine_fixture.h"

#include <cstring>
#include <utility>

#include "common/numeric/hash.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"
#include "google/protobuf/text_format.h"

namespace satrap {

// The job makes mix-ups visible: tables' ids differ from their positions, two features share rows
// of table "t" because they have the same id space, and a third feature reads other rows of "t".
JobConfig TestJob() {
  JobConfig job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        mode: HYBRID
        data {
          features { name: "a" table: "t" }
          features { name: "bag" table: "t" transfer: POOLED pooling: MEAN }
          features { name: "mix" table: "t" transfer: POOLED id_space: "a" }
          features { name: "c" table: "u" }
        }
        tables {
          name: "t"
          id: 3
          segments { dim: 2 }
          segments { dim: 1 }
        }
        tables {
          name: "u"
          id: 9
          segments { dim: 1 }
        }
        embedding_worker { queue_capacity_parts: 2 }
        embedding_ps { replicas: 2 }
        nn_worker { replicas: 2 }
      )pb",
      &job));
  return job;
}

float TestValue(uint64_t key, size_t c) {
  // In rows of three values these are integers of at most 249, and bf16 has every integer up to
  // 256.
  return static_cast<float>(key % 50) + 100 * static_cast<float>(c);
}

uint64_t KeyIn(const char* space, uint64_t id) { return KeyOf(id, Xxh64(space)); }

// ---- FakePs

void FakePs::Call(const rpc::Method& method, rpc::Message request, int64_t, rpc::Callback done) {
  absl::StatusOr<rpc::Message> answer = absl::UnimplementedError("no such method");
  if (!error.ok()) {
    answer = error;
  } else if (method == rpc::kLookup) {
    answer = Lookup(request);
  } else if (method == rpc::kUpdate) {
    answer = Update(request);
  } else if (method == rpc::kApplyStep && !apply_error.ok()) {
    answer = apply_error;
  } else if (method == rpc::kApplyStep) {
    EXPECT_TRUE(apply_steps.emplace_back().ParseFromString(request.header));
    ApplyStepAnswerHeader applied;
    applied.set_outcome(OUTCOME_DONE);
    answer = rpc::Message{applied.SerializeAsString(), Buffer()};
  }
  // Post the answer, as if it came over a network: the engine must not rely on getting an answer
  // within its call.
  executor_->Post(
      [answer = std::move(answer), done = std::move(done)]() mutable { done(std::move(answer)); });
}

rpc::Message FakePs::Lookup(const rpc::Message& request) {
  LookupHeader header;
  EXPECT_TRUE(header.ParseFromString(request.header));
  lookups.push_back(header);
  LookupAnswerHeader answer;
  answer.set_outcome(OUTCOME_DONE);
  answer.set_dtype(dtype_);
  rpc::PayloadBuilder builder;
  for (const TableKeys& table : header.tables()) {
    TableValues* values = answer.add_tables();
    values->set_table(table.table());
    // The section's size agrees with the number stated here, so the answer contradicts only the
    // request, not itself.
    values->set_num_keys(table.num_keys() - (answer_one_row_less ? 1 : 0));
    values->set_row_values(table.table() == 3 ? 3 : 1);
    builder.Reserve(dtype_, values->num_keys() * values->row_values(), values->mutable_values());
  }
  builder.Allocate();
  for (int t = 0; t < answer.tables_size(); ++t) {
    TableValues& values = *answer.mutable_tables(t);
    const auto keys = rpc::SectionView<uint64_t>(request.payload, header.tables(t).keys(),
                                                 header.tables(t).num_keys(), "keys");
    EXPECT_TRUE(keys.ok());
    std::vector<float> rows;
    for (size_t i = 0; i < values.num_keys(); ++i) {
      for (size_t c = 0; c < values.row_values(); ++c) rows.push_back(TestValue((*keys)[i], c));
    }
    builder.Encode(rows, dtype_, values.mutable_values());
  }
  return {answer.SerializeAsString(), builder.Take()};
}

rpc::Message FakePs::Update(const rpc::Message& request) {
  SeenUpdate seen;
  EXPECT_TRUE(seen.header.ParseFromString(request.header));
  for (const TableUpdate& table : seen.header.tables()) {
    const auto keys =
        rpc::SectionView<uint64_t>(request.payload, table.keys(), table.num_keys(), "keys");
    const auto counts =
        rpc::SectionView<uint32_t>(request.payload, table.counts(), table.num_keys(), "counts");
    const auto values = rpc::WireView(request.payload, table.gradients(), seen.header.dtype(),
                                      table.num_keys() * table.row_values(), "gradients");
    EXPECT_TRUE(keys.ok() && counts.ok() && values.ok());
    std::vector<float> gradients(values->count);
    rpc::DecodeWire(*values, absl::MakeSpan(gradients));
    for (size_t i = 0; i < table.num_keys(); ++i) {
      const auto begin = gradients.begin() + static_cast<int64_t>(i * table.row_values());
      // An Update has each key only once, because the worker has summed the gradients of its
      // samples.
      seen.gradients[{table.table(), (*keys)[i]}] =
          std::vector<float>(begin, begin + table.row_values());
      seen.counts[{table.table(), (*keys)[i]}] = (*counts)[i];
    }
  }
  updates.push_back(std::move(seen));
  UpdateAnswerHeader answer;
  answer.set_outcome(OUTCOME_DONE);
  if (squares >= 0) answer.set_squares(squares);
  return {answer.SerializeAsString(), Buffer()};
}

// ---- EngineTest

absl::StatusCode CodeOf(const Reply& reply) {
  EXPECT_TRUE(reply->has_value()) << "not answered";
  return reply->has_value() ? (*reply)->status().code() : absl::StatusCode::kOk;
}

void EngineTest::Start(const JobConfig& job, int index) {
  EmbeddingWorkerEngine::Options options;
  options.index = index;
  envelope_.set_job_fingerprint(kTestFingerprint);
  // Neither value is the default of its field, so a call without one of these fields is refused.
  envelope_.set_generation(5);
  envelope_.set_run_id(kTestRunId);
  options.envelope = envelope_;
  options.position = position_;
  options.candidates = candidates_;
  options.kill_points = kill_points_;
  options.executor = &executor_;
  options.on_failure = [this](absl::Status status) { failures_.push_back(std::move(status)); };
  ps_.clear();
  for (int i = 0; i < job.embedding_ps().replicas(); ++i) {
    ps_.push_back(std::make_unique<FakePs>(&executor_, job.embedding_ps().wire_dtype()));
    options.ps.push_back(ps_.back().get());
  }
  auto engine = EmbeddingWorkerEngine::Create(job, options);
  ASSERT_TRUE(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
}

Reply EngineTest::SendBytes(const rpc::Method& method, rpc::Message message) {
  auto reply = std::make_shared<absl::optional<absl::StatusOr<rpc::Message>>>();
  engine_->Handle(method, std::move(message), [reply](absl::StatusOr<rpc::Message> answer) {
    // The callback shares `reply`, because the engine may answer later: within another SendBytes,
    // or when the test advances the executor's time.
    EXPECT_FALSE(reply->has_value()) << "answered twice";
    *reply = std::move(answer);
  });
  executor_.RunReady();
  return reply;
}

EngineTest::PutMessage EngineTest::MakePart(Stream stream, uint32_t epoch, uint64_t seq,
                                            uint32_t samples,
                                            const std::vector<std::vector<uint64_t>>& ids,
                                            const std::vector<std::vector<uint32_t>>& offsets) {
  PutBatchHeader header;
  header.set_stream(stream);
  header.set_epoch(epoch);
  PartDescription* part = header.mutable_part();
  part->mutable_id()->set_stream(stream);
  part->mutable_id()->set_epoch(epoch);
  part->mutable_id()->set_seq(seq);
  part->set_samples(samples);
  part->set_numerics(1);
  part->set_tasks(1);
  rpc::PayloadBuilder builder;
  builder.Reserve<float>(samples, part->mutable_numeric_values());
  builder.Reserve<float>(samples, part->mutable_labels());
  for (size_t f = 0; f < ids.size(); ++f) {
    FeatureIds* feature = header.add_features();
    feature->set_num_ids(ids[f].size());
    builder.Reserve<uint64_t>(ids[f].size(), feature->mutable_ids());
    if (!offsets[f].empty())
      builder.Reserve<uint32_t>(offsets[f].size(), feature->mutable_offsets());
  }
  builder.Allocate();
  for (uint32_t s = 0; s < samples; ++s) {
    // No two arrays and no two samples have the same values, so a swapped section is noticed.
    builder.Fill<float>(part->numeric_values())[s] = 10 + static_cast<float>(s);
    builder.Fill<float>(part->labels())[s] = static_cast<float>(s);
  }
  const auto copy = [&](const void* from, const Section& to) {
    if (to.size_bytes() > 0) std::memcpy(builder.Fill<uint8_t>(to).data(), from, to.size_bytes());
  };
  for (size_t f = 0; f < ids.size(); ++f) {
    copy(ids[f].data(), header.features(static_cast<int>(f)).ids());
    copy(offsets[f].data(), header.features(static_cast<int>(f)).offsets());
  }
  return {header, builder.Take()};
}

EngineTest::PutMessage EngineTest::TwoSamples(Stream stream, uint32_t epoch, uint64_t seq) {
  // The part has an id that two features share, an id that occurs twice in a feature, and a sample
  // without ids.
  return MakePart(stream, epoch, seq, 2, {{1, 2}, {7, 8}, {1, 3}, {5, 5}}, {{}, {0, 2, 2}, {}, {}});
}

Reply EngineTest::Put(uint64_t number, const PutMessage& part) {
  return Send(rpc::kPutBatch, part.first, 0, number, part.second);
}

Reply EngineTest::PutTwoSamples(uint64_t number, uint32_t epoch) {
  return Put(number, TwoSamples(TRAIN_STREAM, epoch, number));
}

Reply EngineTest::End(uint64_t number, uint32_t epoch) {
  PutBatchHeader header;
  header.set_epoch(epoch);
  return Send(rpc::kPutBatch, header, 0, number);
}

Reply EngineTest::Next(uint32_t rank, uint64_t number, uint32_t epoch, uint32_t wait_ms,
                       Stream stream) {
  NextBatchHeader header;
  header.set_stream(stream);
  header.set_epoch(epoch);
  header.set_wait_ms(wait_ms);
  return Send(rpc::kNextBatch, header, rank, number);
}

Reply EngineTest::NextOrdered(uint32_t rank, uint64_t number, const PartId& wanted, uint64_t step) {
  NextBatchHeader header;
  header.set_epoch(wanted.epoch());
  *header.mutable_wanted() = wanted;
  header.set_step(step);
  return Send(rpc::kNextBatch, header, rank, number);
}

Reply EngineTest::Ack(uint32_t rank, uint64_t number, uint64_t handle, Stream stream) {
  AckHeader header;
  header.set_stream(stream);
  header.set_handle(handle);
  return Send(rpc::kAck, header, rank, number);
}

EngineTest::PushMessage EngineTest::PushOf(const NextBatchAnswerHeader& part, bool finite) {
  PushGradientsHeader header;
  header.set_handle(part.handle());
  header.mutable_step()->set_step(4);
  header.mutable_step()->set_normalizer(32);
  header.mutable_step()->set_finite(finite);
  header.set_dtype(part.dtype());
  if (!finite) return {header, Buffer()};
  rpc::PayloadBuilder builder;
  for (const TableRows& rows : part.tables()) {
    TableGradients* table = header.add_tables();
    table->set_table(rows.table());
    table->set_num_rows(rows.num_rows());
    table->set_row_values(rows.row_values());
    builder.Reserve(part.dtype(), rows.num_rows() * rows.row_values(), table->mutable_gradients());
  }
  for (int f = 0; f < part.features_size(); ++f) {
    // The gradients of a pooled feature are pushed per sample, so they have the size of its pooled
    // values. Those of other features are pushed per row of their table, above.
    if (!part.features(f).has_pooled()) continue;
    FeatureGradients* feature = header.add_features();
    feature->set_feature(f);
    builder.Reserve<uint8_t>(part.features(f).pooled().size_bytes(), feature->mutable_gradients());
  }
  builder.Allocate();
  // Number the gradients in this order, which tests know: first the tables, then the pooled
  // features.
  float next = 1;
  const auto fill = [&](Section* section) {
    std::vector<float> values(section->size_bytes() / rpc::WireValueBytes(part.dtype()));
    for (float& value : values) value = next++;
    builder.Encode(values, part.dtype(), section);
  };
  for (TableGradients& table : *header.mutable_tables()) fill(table.mutable_gradients());
  for (FeatureGradients& feature : *header.mutable_features()) fill(feature.mutable_gradients());
  return {header, builder.Take()};
}

Reply EngineTest::Push(uint32_t rank, uint64_t number, const PushMessage& push) {
  return Send(rpc::kPushGradients, push.first, rank, number, push.second);
}

std::vector<FakePs::SeenUpdate> EngineTest::Updates() const {
  std::vector<FakePs::SeenUpdate> updates;
  for (const auto& ps : ps_) updates.insert(updates.end(), ps->updates.begin(), ps->updates.end());
  return updates;
}

ByKey<std::vector<float>> EngineTest::Gradients() const {
  ByKey<std::vector<float>> gradients;
  // Each key occurs only once: it belongs to one PS, and a test that calls this function pushes
  // only once.
  for (const FakePs::SeenUpdate& update : Updates()) {
    gradients.insert(update.gradients.begin(), update.gradients.end());
  }
  return gradients;
}

}  // namespace satrap
