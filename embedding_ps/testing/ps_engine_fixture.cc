#include "embedding_ps/testing/ps_engine_fixture.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/numeric/hash.h"
#include "common/rpc/hot_methods.h"
#include "common/rpc/payload.h"

namespace satrap {

Envelope ThisRun() {
  Envelope envelope;
  envelope.set_job_fingerprint(77);
  envelope.set_generation(1);
  envelope.set_run_id(5);
  return envelope;
}

JobConfig PsTestJob(JobConfig::Mode mode, int ranks, int num_ps) {
  JobConfig job;
  job.set_mode(mode);
  job.mutable_nn_worker()->set_replicas(ranks);
  job.mutable_embedding_ps()->set_replicas(num_ps);
  TableConfig* table = job.add_tables();
  table->set_name("ids");
  table->set_id(kTable);
  for (const int dim : {2, 1}) {
    SegmentConfig* segment = table->add_segments();
    segment->set_name(dim == 2 ? "embedding" : "linear");
    segment->set_dim(dim);
    segment->mutable_initializer()->mutable_constant()->set_value(1);
    segment->mutable_optimizer()->mutable_sgd();
    segment->mutable_optimizer()->set_learning_rate(1);
  }
  return job;
}

Pss::Pss(const JobConfig& job, Executor* disk_executor, SparseOptimizerFactory new_optimizer)
    : Pss(job, disk_executor, [&] {
        PsEngine::Options options;
        options.new_optimizer = new_optimizer;
        return options;
      }()) {}

Pss::Pss(const JobConfig& job, Executor* disk_executor, PsEngine::Options options) {
  for (int i = 0; i < job.embedding_ps().replicas(); ++i) {
    options.envelope = ThisRun();
    options.index = i;
    options.executor = &executor_;
    options.disk_executor = disk_executor != nullptr ? disk_executor : &executor_;
    auto engine = PsEngine::Create(job, options);
    CHECK(engine.ok()) << engine.status().ToString();
    engines_.push_back(*std::move(engine));
  }
}

void Pss::Call(int ps, const rpc::Method& method, rpc::Message request, Answers* answers) {
  engines_[ps]->Handle(method, std::move(request), [answers](absl::StatusOr<rpc::Message> got) {
    answers->push_back(std::move(got));
  });
  executor_.RunReady();
}

absl::StatusOr<rpc::Message> Pss::CallAndWait(int ps, const rpc::Method& method,
                                              rpc::Message request) {
  Answers answers;
  Call(ps, method, std::move(request), &answers);
  CHECK(answers.size() == 1) << answers.size() << " answers";
  return answers[0];
}

std::map<uint64_t, std::vector<float>> Pss::Rows(const std::vector<uint64_t>& keys, bool training) {
  std::map<uint64_t, std::vector<float>> rows;
  for (const uint64_t key : keys) {
    const int ps = PsOfPartition(PartitionOf(key), static_cast<int>(engines_.size()));
    rows[key] = *Values(CallAndWait(ps, rpc::kLookup, LookupOf({key}, training)));
  }
  return rows;
}

rpc::Message Pss::LookupOf(const std::vector<uint64_t>& keys, bool training,
                           absl::optional<uint64_t> step) {
  // Each Lookup gets a new call number.
  static uint64_t last_number = 0;
  LookupHeader header;
  *header.mutable_envelope() = ThisRun();
  header.mutable_call()->set_sender(0);
  header.mutable_call()->set_number(++last_number);
  header.mutable_call()->set_oldest_open(last_number);
  header.set_training(training);
  if (step.has_value()) header.set_step(*step);
  TableKeys* table = header.add_tables();
  table->set_table(kTable);
  table->set_num_keys(keys.size());
  rpc::PayloadBuilder builder;
  builder.Reserve<uint64_t>(keys.size(), table->mutable_keys());
  builder.Allocate();
  std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(table->keys()).begin());
  return {header.SerializeAsString(), builder.Take()};
}

absl::StatusOr<std::vector<float>> Pss::Values(const absl::StatusOr<rpc::Message>& answer) {
  if (!answer.ok()) return answer.status();
  LookupAnswerHeader header;
  CHECK(header.ParseFromString(answer->header));
  const auto wire =
      rpc::WireView(answer->payload, header.tables(0).values(), header.dtype(),
                    header.tables(0).num_keys() * header.tables(0).row_values(), "values");
  CHECK(wire.ok()) << wire.status().ToString();
  std::vector<float> values(wire->count);
  rpc::DecodeWire(*wire, absl::MakeSpan(values));
  return values;
}

UpdateCall UpdateOf(JobConfig::Mode mode, uint32_t rank, uint64_t step,
                    const std::vector<uint64_t>& keys, const std::vector<float>& gradients,
                    WireDtype dtype) {
  UpdateCall call;
  *call.header.mutable_envelope() = ThisRun();
  call.header.mutable_call()->set_sender(rank);
  call.header.mutable_call()->set_number(step + 1);
  call.header.mutable_call()->set_oldest_open(step + 1);
  call.header.mutable_step()->set_step(step);
  call.header.mutable_step()->set_normalizer(1);
  call.header.set_part(rank);
  call.header.set_ordered(mode == JobConfig::SYNC);
  call.header.set_dtype(dtype);
  if (keys.empty()) return call;
  TableUpdate* table = call.header.add_tables();
  table->set_table(kTable);
  table->set_num_keys(keys.size());
  table->set_row_values(kValues);
  rpc::PayloadBuilder builder;
  builder.Reserve<uint64_t>(keys.size(), table->mutable_keys());
  builder.Reserve(dtype, gradients.size(), table->mutable_gradients());
  builder.Allocate();
  std::copy(keys.begin(), keys.end(), builder.Fill<uint64_t>(table->keys()).begin());
  builder.Encode(gradients, dtype, table->mutable_gradients());
  call.payload = builder.Take();
  return call;
}

UpdateCall UpdateWithCounts(JobConfig::Mode mode, uint32_t rank, const std::vector<uint64_t>& keys,
                            const std::vector<uint32_t>& counts, std::vector<float> gradients) {
  gradients.resize(keys.size() * kValues);
  UpdateCall call = UpdateOf(mode, rank, 0, keys, gradients);
  const size_t offset = (call.payload.size() + 63) / 64 * 64;
  Buffer longer(offset + counts.size() * sizeof(uint32_t));
  std::copy_n(call.payload.data(), call.payload.size(), longer.mutable_data());
  std::copy(counts.begin(), counts.end(),
            longer.MutableView<uint32_t>(offset, counts.size()).begin());
  Section* section = call.header.mutable_tables(0)->mutable_counts();
  section->set_offset_bytes(offset);
  section->set_size_bytes(counts.size() * sizeof(uint32_t));
  call.payload = longer;
  return call;
}

}  // namespace satrap
