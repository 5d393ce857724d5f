#include "nn_worker/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace satrap {
namespace {

// Entries are compacted when there are this many, and then whenever their number has doubled since
// the last time, so that the cost of an entry stays small.
constexpr size_t kCompactEntries = 1 << 16;
constexpr size_t kEntryBytes = 20;

// An integer with the order of the floats: the bits of negative ones are inverted, and the others
// are moved above them. -0 becomes 0.
uint32_t KeyOfScore(float score) {
  score += 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof(bits));
  if (bits == 0x80000000u) bits = 0;
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <typename T>
T TakeAt(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

}  // namespace

void Auc::Add(float score, float label, double weight) {
  if (weight == 0) return;
  if (std::isnan(score)) {
    ++nan_scores_;
    return;
  }
  const bool positive = label > 0.5f;
  Append({KeyOfScore(score), positive ? weight : 0, positive ? 0 : weight});
}

void Auc::Append(const Entry& entry) {
  entries_.push_back(entry);
  if (entries_.size() >= std::max(kCompactEntries, 2 * compacted_)) Compact();
}

void Auc::Merge(const Auc& other) {
  nan_scores_ += other.nan_scores_;
  for (const Entry& entry : other.entries_) Append(entry);
}

void Auc::Compact() {
  if (compacted_ == entries_.size()) return;
  const auto less = [](const Entry& a, const Entry& b) { return a.key < b.key; };
  // Stable, so that the weights of one score are added in the order in which they came.
  std::stable_sort(entries_.begin() + compacted_, entries_.end(), less);
  std::inplace_merge(entries_.begin(), entries_.begin() + compacted_, entries_.end(), less);
  size_t kept = 0;
  for (size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].key == entries_[kept].key) {
      entries_[kept].positive += entries_[i].positive;
      entries_[kept].negative += entries_[i].negative;
    } else {
      entries_[++kept] = entries_[i];
    }
  }
  entries_.resize(kept + 1);
  compacted_ = entries_.size();
}

MetricValue Auc::Compute() {
  Compact();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (nan_scores_ > 0) return {nan, "a score is not a number"};
  // Numbers of pairs are products of sums and pass 2^53 early; in long double they stay exact.
  long double won = 0;
  long double negatives_below = 0;
  long double positives = 0;
  for (const Entry& entry : entries_) {
    won += static_cast<long double>(entry.positive) * (negatives_below + entry.negative / 2.0L);
    negatives_below += entry.negative;
    positives += entry.positive;
  }
  if (positives == 0) return {nan, "no positive sample"};
  if (negatives_below == 0) return {nan, "no negative sample"};
  return {static_cast<double>(won / (positives * negatives_below)), ""};
}

std::string Auc::Encode() {
  Compact();
  std::string out;
  out.reserve(16 + entries_.size() * kEntryBytes);
  Put<uint64_t>(entries_.size(), &out);
  Put<uint64_t>(nan_scores_, &out);
  for (const Entry& entry : entries_) {
    Put(entry.key, &out);
    Put(entry.positive, &out);
    Put(entry.negative, &out);
  }
  return out;
}

absl::Status Auc::MergeEncoded(absl::string_view bytes) {
  const absl::Status bad = absl::InvalidArgumentError("AUC state of another rank: wrong size");
  if (bytes.size() < 16) return bad;
  const uint64_t count = TakeAt<uint64_t>(bytes, 0);
  if (count != (bytes.size() - 16) / kEntryBytes || (bytes.size() - 16) % kEntryBytes != 0) {
    return bad;
  }
  nan_scores_ += TakeAt<uint64_t>(bytes, 8);
  for (size_t at = 16; at < bytes.size(); at += kEntryBytes) {
    Append({TakeAt<uint32_t>(bytes, at), TakeAt<double>(bytes, at + 4),
            TakeAt<double>(bytes, at + 12)});
  }
  return absl::OkStatus();
}

}  // namespace satrap
