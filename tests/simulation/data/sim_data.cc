#include "tests/simulation/data/sim_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/chunk/chunk.h"
#include "common/config/field_path.h"
#include "common/numeric/random.h"
#include "tests/simulation/data/sim_formats.h"

namespace satrap::simulation {
namespace {

// An id consists of stream, split and row. With two bits for the stream it stays below 2^24, up to
// which f32 holds every integer exactly. This matters because an id also travels as a numeric
// value.
constexpr int kSplitBits = 8;
constexpr int kRowBits = 8;
// The number of ids in the train stream. Evaluation streams draw from twice as many, so that they
// also look up keys that no step has trained.
constexpr uint64_t kTrainIds = 12;

int Draw(SplitMix64* random, int low, int high) {
  return low + static_cast<int>(random->Below(high - low + 1));
}

void AddColumn(const std::string& name, ColumnConfig::Kind kind, JobConfig* job) {
  ColumnConfig* column = job->mutable_data()->mutable_csv()->add_columns();
  column->set_name(name);
  column->set_kind(kind);
}

SegmentConfig* AddSegment(const std::string& name, int dim, double initial_value,
                          TableConfig* table) {
  SegmentConfig* segment = table->add_segments();
  segment->set_name(name);
  segment->set_dim(dim);
  segment->mutable_initializer()->mutable_constant()->set_value(static_cast<float>(initial_value));
  return segment;
}

void SetOptimizer(SparseOptimizerConfig::KindCase kind, SparseOptimizerConfig* optimizer) {
  optimizer->set_learning_rate(static_cast<float>(LearningRateOf(kind)));
  switch (kind) {
    case SparseOptimizerConfig::kSgd:
      optimizer->mutable_sgd();
      break;
    case SparseOptimizerConfig::kAdagrad:
      optimizer->mutable_adagrad()->set_initial_accumulator(kInitialAccumulator);
      optimizer->mutable_adagrad()->set_epsilon(kEpsilon);
      break;
    case SparseOptimizerConfig::kRowwiseAdagrad:
      optimizer->mutable_rowwise_adagrad()->set_initial_accumulator(kInitialAccumulator);
      optimizer->mutable_rowwise_adagrad()->set_epsilon(kEpsilon);
      break;
    case SparseOptimizerConfig::kAdam:
      optimizer->mutable_adam()->set_epsilon(kEpsilon);
      break;
    default:
      // Worlds draw the four kinds above. The other kinds differ only in arithmetic, which their
      // own tests check.
      CHECK(false) << "worlds have no optimizer of kind " << kind;
  }
}

void AddFeature(const std::string& name, const std::string& table, FeatureConfig::Transfer transfer,
                JobConfig* job) {
  FeatureConfig* feature = job->mutable_data()->add_features();
  feature->set_name(name);
  feature->set_table(table);
  feature->set_transfer(transfer);
}

// Adds candidates as a second task, because a candidate loss has no metric. Candidates are drawn
// with repeats, so a part may have the same row twice.
void AddCandidates(const WorldShape& shape, JobConfig* job) {
  ModelConfig* const model = job->mutable_model();
  LayerConfig* const head = model->add_layers();
  head->set_name("next");
  head->add_inputs("single.embedding");
  head->mutable_candidate_logits();
  model->add_tasks()->set_name("click");
  TaskConfig* const next = model->add_tasks();
  next->set_name("next");
  next->set_output("next");
  next->set_loss(TaskConfig::SAMPLED_SOFTMAX);
  CandidatesConfig* const candidates = model->mutable_candidates();
  candidates->set_feature("single");
  candidates->set_count(shape.candidates);
  candidates->set_sampler(CandidatesConfig::UNIFORM);
  candidates->set_unique(false);
}

void AddTables(const WorldShape& shape, JobConfig* job) {
  TableConfig* counters = job->add_tables();
  counters->set_name("counters");
  counters->set_id(0);
  SparseOptimizerConfig* counting =
      AddSegment("pushes", kCounterValues, 0, counters)->mutable_optimizer();
  counting->mutable_sgd();
  counting->set_learning_rate(1);
  // With normalisation NONE the gradients of counters are not clipped either, so counters stay
  // whole numbers.
  if (shape.step_clip_norm > 0) counters->set_normalisation(NONE);
  TableConfig* rows = job->add_tables();
  rows->set_name("rows");
  rows->set_id(1);
  SetOptimizer(shape.optimizers[0],
               AddSegment("embedding", kEmbeddingDim, kInitialRowValue, rows)->mutable_optimizer());
  SetOptimizer(shape.optimizers[1],
               AddSegment("linear", kRowValues - kEmbeddingDim, kInitialRowValue, rows)
                   ->mutable_optimizer());
  if (shape.global) rows->set_semantics(TableConfig::GLOBAL);
  rows->set_frozen(shape.frozen);
  for (SegmentConfig& segment : *rows->mutable_segments()) {
    segment.set_l2(static_cast<float>(shape.l2));
    segment.set_l2_mode(shape.dense_l2 ? SegmentConfig::DENSE : SegmentConfig::TOUCHED);
    segment.set_gradient_clip_norm(static_cast<float>(shape.gradient_clip_norm));
    segment.set_weight_bound(static_cast<float>(shape.weight_bound));
  }
}

void AddData(const WorldShape& shape, JobConfig* job) {
  AddColumn("label", ColumnConfig::LABEL, job);
  AddColumn("weight", ColumnConfig::WEIGHT, job);
  AddColumn("number", ColumnConfig::NUMERIC, job);
  AddColumn("counter", ColumnConfig::ID, job);
  AddColumn("single", ColumnConfig::ID, job);
  AddColumn("several", ColumnConfig::MULTI_ID, job);
  job->mutable_data()->set_shuffle_rows(shape.shuffle_rows);
  // Files have so many bad lines that the default limit would end the run.
  job->mutable_data()->set_max_bad_fraction(1);
  job->mutable_data()->add_numerics()->set_name("number");
  AddFeature("counter", "counters", FeatureConfig::ROWS, job);
  AddFeature("single", "rows", FeatureConfig::ROWS, job);
  AddFeature("several", "rows", shape.transfer, job);
}

}  // namespace

WorldShape WorldShape::Draw(uint64_t seed) {
  SplitMix64 random(seed);
  using satrap::simulation::Draw;
  WorldShape shape;
  shape.seed = seed;
  shape.ordered = random.Below(2) == 0;
  shape.loaders = Draw(&random, 1, 2);
  shape.workers = Draw(&random, 1, 3);
  shape.ps = Draw(&random, 1, 2);
  shape.ranks = Draw(&random, 1, kMaxRanks);
  // In ordered mode a loader owns whole lanes, so there is at least one lane for each loader. A
  // batch has at least one sample for each rank. Jobs without this are refused.
  shape.lanes = Draw(&random, shape.ordered ? shape.loaders : 1, 3);
  shape.max_staleness = Draw(&random, 1, 3);
  shape.epochs = Draw(&random, 1, 3);
  shape.global_batch_size = Draw(&random, shape.ranks, 8);
  shape.queue_capacity_parts = Draw(&random, 1, 3);
  shape.evaluate_every_steps = random.Below(2) == 0 ? 0 : Draw(&random, 2, 5);
  shape.split_rows.resize(3);
  for (int stream = 0; stream < 3; ++stream) {
    const int splits = Draw(&random, 0, stream == TRAIN_STREAM ? 6 : 3);
    for (int i = 0; i < splits; ++i) {
      shape.split_rows[stream].push_back(Draw(&random, 0, 12));
    }
  }
  shape.transfer = static_cast<FeatureConfig::Transfer>(random.Below(3));
  shape.has_non_finite_steps = random.Below(3) == 0;
  shape.max_steps = random.Below(4) == 0 ? Draw(&random, 1, 12) : 0;
  shape.shuffle_rows = random.Below(2) == 0 ? 0 : Draw(&random, 1, 8);
  shape.parse_threads = Draw(&random, 1, 2);
  shape.prefetch_parts = Draw(&random, 1, 4);
  shape.has_valid = random.Below(8) != 0;
  shape.evaluate_at_epoch_end = random.Below(4) != 0;
  shape.metric = random.Below(2) == 0 ? AUC : LOGLOSS;
  shape.patience = random.Below(2) == 0 ? 0 : Draw(&random, 1, 3);
  if (random.Below(4) == 0) {
    shape.stop_rank = Draw(&random, 0, shape.ranks - 1);
    shape.stop_after_steps = Draw(&random, 0, 12);
  }
  // The order of draws is part of what a seed means, and README.md names seeds. So a new draw comes
  // after all others, or has a stream of RandomBits for itself, as here and in MakeJob.
  shape.staleness_warmup_steps = static_cast<int>(RandomBits(seed, 81) % 6);
  shape.evaluate_every_seconds = RandomBits(seed, 95) % 8 == 0 ? 0.02 : 0;
  // A job that reduces its rates without validation data is refused.
  const bool validates = shape.has_valid && !shape.split_rows[VALID_STREAM].empty();
  if (validates && RandomBits(seed, 111) % 4 == 0) {
    shape.plateau_patience = 1 + static_cast<int>(RandomBits(seed, 111) / 4 % 2);
  }
  const uint64_t candidates = RandomBits(seed, 103);
  shape.candidates = candidates % 4 == 0 ? 1 + static_cast<int>(candidates / 4 % 3) : 0;
  if (random.Below(2) == 0) {
    for (auto& optimizer : shape.optimizers) {
      optimizer = static_cast<SparseOptimizerConfig::KindCase>(
          Draw(&random, SparseOptimizerConfig::kSgd, SparseOptimizerConfig::kAdam));
    }
    shape.l2 = random.Below(2) == 0 ? 0 : 0.0625;
    shape.gradient_clip_norm = random.Below(2) == 0 ? 0 : 0.75;
    shape.weight_bound = random.Below(4) == 0 ? 1.5 : 0;
  }
  shape.global = shape.ordered && RandomBits(seed, 107) % 4 == 0;
  if (shape.global) {
    for (int i = 0; i < 2; ++i) {
      if (RandomBits(seed, 107, 4 + i) % 2 == 0) shape.optimizers[i] = SparseOptimizerConfig::kAdam;
    }
    shape.dense_l2 = RandomBits(seed, 107, 2) % 2 == 0;
    if (shape.dense_l2) shape.l2 = 0.0625;
  }
  shape.frozen = RandomBits(seed, 107, 3) % 16 == 0;
  if (shape.ordered && RandomBits(seed, 109) % 3 == 0) shape.step_clip_norm = 1.25;
  shape.compact_after = 1 + RandomBits(seed, 113) % 8;
  // The messages of these worlds have a few hundred bytes.
  const uint64_t chunks = RandomBits(seed, 115);
  if (chunks % 4 == 0) {
    shape.max_message_bytes =
        static_cast<int64_t>(rpc::kChunkOverheadBytes + 64 + chunks / 4 % 448);
  }
  return shape;
}

WorldShape WorldShape::WithOtherReplicas(int life) const {
  SplitMix64 random(RandomBits(seed, life, 82));
  using satrap::simulation::Draw;
  WorldShape other = *this;
  // Everything that determines the samples and their order stays, including lanes and batch size.
  other.loaders = Draw(&random, 1, ordered ? std::min(lanes, 2) : 2);
  other.workers = Draw(&random, 1, 3);
  other.ps = Draw(&random, 1, 2);
  other.ranks = Draw(&random, 1, std::min(global_batch_size, kMaxRanks));
  if (stop_rank >= 0) other.stop_rank = stop_rank % other.ranks;
  return other;
}

bool IsFiniteStep(const WorldShape& shape, uint64_t step) {
  return !shape.has_non_finite_steps || RandomBits(shape.seed, step, 78) % 4 != 0;
}

double DenseSquares(const WorldShape& shape, uint64_t step) {
  return static_cast<double>(RandomBits(shape.seed, step, 109) % 4);
}

SimSample MakeSample(const WorldShape& shape, Stream stream, int split, int row) {
  CHECK(row < shape.split_rows[stream][split]);
  SimSample sample;
  sample.id = (static_cast<uint64_t>(stream) << (kSplitBits + kRowBits)) |
              (static_cast<uint64_t>(split) << kRowBits) | static_cast<uint64_t>(row);
  SplitMix64 random(RandomBits(shape.seed, sample.id, 77));
  const uint64_t ids = stream == TRAIN_STREAM ? kTrainIds : 2 * kTrainIds;
  // About every fourth sample has weight 0, so that some steps have weight 0.
  sample.weight = static_cast<float>(random.Below(4));
  // There are few ids, so that samples of a batch, and consecutive batches, update the same rows.
  sample.single = random.Below(ids);
  const uint64_t several = random.Below(4);
  for (uint64_t i = 0; i < several; ++i) sample.several.push_back(random.Below(ids));
  return sample;
}

SimSample SampleOfId(const WorldShape& shape, uint64_t id) {
  const auto stream = static_cast<Stream>(id >> (kSplitBits + kRowBits));
  const int split = static_cast<int>((id >> kRowBits) & ((1 << kSplitBits) - 1));
  return MakeSample(shape, stream, split, static_cast<int>(id & ((1 << kRowBits) - 1)));
}

std::vector<uint64_t> CandidateKeys(const WorldShape& shape, const PartId& part) {
  formats::DrawnPart of = {part.epoch(), part.lane(), part.seq(), absl::nullopt};
  if (!shape.ordered) of.part = part.part();
  std::vector<uint64_t> keys;
  for (const uint64_t item :
       formats::UniformCandidates(shape.seed, of, shape.candidates, kTrainIds)) {
    keys.push_back(SingleKey(item));
  }
  return keys;
}

CandidateList ItemsOf(const WorldShape& shape) {
  CandidateList list;
  if (shape.candidates == 0) return list;
  for (uint64_t item = 0; item < kTrainIds; ++item) {
    list.ids.push_back(formats::XxHash64OfShortText(absl::StrCat(item)));
    list.counts.push_back(1);
  }
  return list;
}

double LogQOfItems(const WorldShape& shape) {
  return std::log(static_cast<double>(shape.candidates) / kTrainIds);
}

std::vector<int> RowOrder(const WorldShape& shape, Stream stream, int split, uint32_t epoch) {
  const int rows = shape.split_rows[stream][split];
  std::vector<int> order;
  // Evaluation streams are never shuffled.
  if (stream != TRAIN_STREAM || shape.shuffle_rows == 0) {
    for (int row = 0; row < rows; ++row) order.push_back(row);
    return order;
  }
  for (int from = 0; from < rows; from += shape.shuffle_rows) {
    // The last block of a split may be shorter, and is permuted by itself.
    const int block_rows = std::min(rows - from, shape.shuffle_rows);
    for (const uint32_t row : formats::ShuffledRows(shape.seed, epoch, static_cast<uint32_t>(split),
                                                    from / shape.shuffle_rows, block_rows)) {
      order.push_back(from + static_cast<int>(row));
    }
  }
  return order;
}

MetricValues DrawMetrics(const WorldShape& shape, uint64_t merge, uint64_t samples) {
  // The metrics are drawn by `merge` and do not depend on what was scored. A validation that is
  // repeated after a restart gets the same values again, so the judgement must be the same, too.
  const uint64_t auc = RandomBits(shape.seed, merge, 79) % 6;
  const uint64_t logloss = RandomBits(shape.seed, merge, 80) % 6;
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  MetricValues values;
  values.set_samples(samples);
  values.set_auc(auc == 0 ? kNan : 0.5 + 0.05 * static_cast<double>(auc));
  values.set_logloss(logloss == 0 ? kNan : 0.3 + 0.05 * static_cast<double>(logloss));
  return values;
}

JobConfig MakeJob(const WorldShape& shape) {
  JobConfig job;
  job.set_name(absl::StrCat("world-", shape.seed));
  job.set_mode(shape.ordered ? JobConfig::SYNC : JobConfig::HYBRID);
  job.set_seed(shape.seed);
  job.set_global_batch_size(shape.global_batch_size);
  job.set_gradient_clip_norm(static_cast<float>(shape.step_clip_norm));
  job.set_epochs(shape.epochs);
  job.set_max_steps(shape.max_steps);
  job.set_lanes(shape.lanes);
  job.set_max_staleness(shape.max_staleness);
  job.set_staleness_warmup_steps(shape.staleness_warmup_steps);
  job.mutable_data_loader()->set_replicas(shape.loaders);
  job.mutable_data_loader()->set_threads(shape.parse_threads);
  job.mutable_data_loader()->set_prefetch_parts(shape.prefetch_parts);
  job.mutable_embedding_worker()->set_replicas(shape.workers);
  job.mutable_embedding_worker()->set_queue_capacity_parts(shape.queue_capacity_parts);
  job.mutable_embedding_ps()->set_replicas(shape.ps);
  // There are two shards, because rows are marked, saved and loaded shard by shard.
  job.mutable_embedding_ps()->set_shards(2);
  job.mutable_nn_worker()->set_replicas(shape.ranks);
  job.mutable_nn_worker()->set_idle_step_ms(3);
  job.mutable_evaluation()->set_every_steps(shape.evaluate_every_steps);
  job.mutable_evaluation()->set_every_seconds(shape.evaluate_every_seconds);
  job.mutable_evaluation()->set_at_epoch_end(shape.evaluate_at_epoch_end);
  job.mutable_evaluation()->set_metric(shape.metric);
  job.mutable_evaluation()->set_patience(shape.patience);
  if (shape.plateau_patience > 0) {
    ReduceOnPlateau* plateau = job.mutable_evaluation()->mutable_reduce_on_plateau();
    plateau->set_factor(kPlateauFactor);
    plateau->set_min_factor(kLeastPlateauFactor);
    plateau->set_patience(shape.plateau_patience);
  }
  // No network is built from this layer, but a job without a layer is not valid.
  LayerConfig* logit = job.mutable_model()->add_layers();
  logit->set_name("logit");
  logit->add_inputs("numeric");
  logit->mutable_linear();
  if (shape.candidates > 0) AddCandidates(shape, &job);
  CheckpointConfig* checkpoint = job.mutable_checkpoint();
  checkpoint->set_every_steps(static_cast<int64_t>(RandomBits(shape.seed, 84) % 5));
  checkpoint->set_every_seconds(RandomBits(shape.seed, 86) % 4 == 0 ? 0.02 : 0);
  checkpoint->set_keep(1 + static_cast<int>(RandomBits(shape.seed, 87) % 2));
  // The limit is so small that a cut is abandoned as soon as rows change. After two such cuts the
  // next one makes Updates wait.
  if (RandomBits(shape.seed, 88) % 8 == 0) checkpoint->set_copy_bytes(64);
  AddTables(shape, &job);
  AddData(shape, &job);
  FillDefaults(&job);
  return job;
}

double NormalizerOf(const WorldShape& shape, double weight, uint64_t samples) {
  if (samples >= static_cast<uint64_t>(shape.global_batch_size)) return weight;
  return weight * shape.global_batch_size / static_cast<double>(samples);
}

uint64_t SingleKey(uint64_t id) { return formats::KeyOfText(absl::StrCat(id), "single"); }
uint64_t SeveralKey(uint64_t id) { return formats::KeyOfText(absl::StrCat(id), "several"); }
uint64_t CounterKey() { return formats::KeyOfText("0", "counter"); }

float SampleGradient(const SimSample& sample, int feature, int d, double pull, double pooled) {
  // Drawn from the id alone, so that every rank, life and attempt computes the same gradient.
  const auto drawn = static_cast<double>(RandomBits(sample.id, feature, d) % 7) - 3;
  return static_cast<float>(sample.weight * (drawn + pull * pooled));
}

}  // namespace satrap::simulation
