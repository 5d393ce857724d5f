#include "tests/simulation/sim_part_source.h"

#include <utility>

#include "common/rpc/payload.h"

namespace satrap::simulation {

void SimPartSource::Next(Callback done) { Pull(std::move(done)); }

void SimPartSource::Pull(Callback done) {
  const size_t batch = shape_.global_batch_size;
  // A batch is cut when a sample beyond it is known, or the end: only then is it known whether it
  // is the lane's last.
  while (parts_.empty() && waiting_.size() > batch) CutBatch(batch, false);
  if (!parts_.empty()) {
    Part part = std::move(parts_.front());
    parts_.pop_front();
    done(absl::optional<Part>(std::move(part)));
    return;
  }
  if (supply_ended_) {
    const bool any = !waiting_.empty() || (ordered_ && seq_ == 0);
    if (any) {
      CutBatch(waiting_.size(), true);
      Pull(std::move(done));
      return;
    }
    ++epoch_;
    seq_ = 0;
    supply_ended_ = false;
    done(absl::optional<Part>());
    return;
  }
  supply_->NextSplit(epoch_, [this, done = std::move(done)](
                                 absl::StatusOr<absl::optional<uint32_t>> split) mutable {
    if (!split.ok()) {
      done(split.status());
      return;
    }
    if (split->has_value()) {
      AddSplit(**split);
    } else {
      supply_ended_ = true;
    }
    Pull(std::move(done));
  });
}

void SimPartSource::AddSplit(uint32_t split) {
  for (int row = 0; row < shape_.split_rows[stream_][split]; ++row) {
    waiting_.push_back(MakeSample(shape_, stream_, static_cast<int>(split), row));
  }
}

void SimPartSource::CutBatch(size_t size, bool last_of_lane) {
  for (int part = 0; part < shape_.ranks; ++part) {
    const size_t from = size * part / shape_.ranks;
    const size_t to = size * (part + 1) / shape_.ranks;
    if (!ordered_ && from == to) continue;
    parts_.push_back(MakePart(waiting_, from, to, part, last_of_lane));
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + size);
  ++seq_;
}

Part SimPartSource::MakePart(const std::vector<SimSample>& samples, size_t from, size_t to,
                             uint32_t part, bool last_of_lane) const {
  Part made;
  made.header.set_stream(stream_);
  made.header.set_epoch(epoch_);
  PartDescription* description = made.header.mutable_part();
  PartId* id = description->mutable_id();
  id->set_stream(stream_);
  id->set_epoch(epoch_);
  id->set_lane(lane_);
  id->set_seq(seq_);
  id->set_part(part);
  const size_t count = to - from;
  description->set_last_of_lane(last_of_lane);
  description->set_samples(static_cast<uint32_t>(count));
  description->set_first_sample(from);
  description->set_numerics(1);
  description->set_tasks(1);
  size_t several = 0;
  for (size_t i = from; i < to; ++i) several += samples[i].several.size();
  rpc::PayloadBuilder builder;
  builder.Reserve<float>(count, description->mutable_numeric_values());
  builder.Reserve<float>(count, description->mutable_labels());
  builder.Reserve<float>(count, description->mutable_weights());
  FeatureIds* features[3];
  for (FeatureIds*& feature : features) {
    feature = made.header.add_features();
    feature->set_num_ids(count);
    if (&feature == &features[2]) {
      feature->set_num_ids(several);
      builder.Reserve<uint32_t>(count + 1, feature->mutable_offsets());
    }
    builder.Reserve<uint64_t>(feature->num_ids(), feature->mutable_ids());
  }
  builder.Allocate();
  uint32_t end = 0;
  builder.Fill<uint32_t>(features[2]->offsets())[0] = 0;
  for (size_t i = 0; i < count; ++i) {
    const SimSample& sample = samples[from + i];
    builder.Fill<float>(description->numeric_values())[i] = static_cast<float>(sample.id);
    builder.Fill<float>(description->labels())[i] = 0;
    builder.Fill<float>(description->weights())[i] = sample.weight;
    builder.Fill<uint64_t>(features[0]->ids())[i] = 0;
    builder.Fill<uint64_t>(features[1]->ids())[i] = sample.single;
    for (const uint64_t value : sample.several) {
      builder.Fill<uint64_t>(features[2]->ids())[end++] = value;
    }
    builder.Fill<uint32_t>(features[2]->offsets())[i + 1] = end;
  }
  made.payload = builder.Take();
  return made;
}

}  // namespace satrap::simulation
