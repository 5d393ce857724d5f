#include "nn_worker/metrics/auc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/metrics/entry_exchange.h"

namespace satrap {
namespace {

constexpr uint32_t kSign = 0x80000000u;

// Maps a float to an integer, so that integers have the order of the floats: the bits of negative
// floats are inverted, and other floats are moved above them. -0 becomes 0.
uint32_t KeyOf(float value) {
  value += 0.0f;
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (bits == kSign) bits = 0;
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
float ValueOf(uint32_t key) {
  const uint32_t bits = (key & kSign) != 0 ? key & ~kSign : ~key;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t ScoreKeyOf(uint64_t entry) { return static_cast<uint32_t>(entry >> 32); }
float WeightOf(uint64_t entry) { return ValueOf(static_cast<uint32_t>(entry)); }
uint64_t EntryOf(uint32_t score_key, float weight) {
  return (static_cast<uint64_t>(score_key) << 32) | KeyOf(weight);
}

// The end of those entries, from `begin` on, that have the same score and the same class as *begin.
const uint64_t* EndOfEqual(const uint64_t* begin, const uint64_t* end) {
  const bool positive = WeightOf(*begin) > 0;
  const uint64_t* at = begin + 1;
  while (at != end && ScoreKeyOf(*at) == ScoreKeyOf(*begin) && (WeightOf(*at) > 0) == positive) {
    ++at;
  }
  return at;
}

// Replaces the entries of one score and class by at most two: one has the leading 24 bits of the
// sum of their weights, and the other has the rest. Together they are exact for up to 2^48 samples
// of weight 1.
size_t JoinEqual(uint64_t* entries, size_t count) {
  const uint64_t* const end = entries + count;
  uint64_t* out = entries;
  for (const uint64_t* at = entries; at != end;) {
    const uint64_t* const equal_end = EndOfEqual(at, end);
    const uint32_t key = ScoreKeyOf(*at);
    double sum = 0;
    for (const uint64_t* equal = at; equal != equal_end; ++equal) sum += WeightOf(*equal);
    auto leading = static_cast<float>(sum);
    if (std::abs(leading) > std::abs(sum)) leading = std::nextafter(leading, 0.0f);
    const auto rest = static_cast<float>(sum - leading);
    const bool joins = equal_end - at > (rest != 0 ? 2 : 1) && std::isfinite(leading);
    if (!joins) {
      out = std::copy(at, equal_end, out);
    } else {
      *out++ = EntryOf(key, leading);
      if (rest != 0) *out++ = EntryOf(key, rest);
      // Entries must ascend. The rest is the smaller of the two entries if the sum is positive.
      if (rest > 0) std::swap(out[-1], out[-2]);
    }
    at = equal_end;
  }
  return static_cast<size_t>(out - entries);
}

// A long double has 64 significant bits, which two doubles hold exactly.
void Put(long double value, std::string* out) {
  const auto leading = static_cast<double>(value);
  const double parts[] = {leading, static_cast<double>(value - leading)};
  out->append(reinterpret_cast<const char*>(parts), sizeof(parts));
}
long double TakeAt(absl::string_view bytes, size_t at) {
  double parts[2];
  std::memcpy(parts, bytes.data() + at, sizeof(parts));
  return static_cast<long double>(parts[0]) + parts[1];
}
constexpr size_t kPutBytes = 2 * sizeof(double);

}  // namespace

Auc::Auc() : entries_(&JoinEqual) {}

void Auc::Add(float score, float label, float weight) {
  CHECK(!merged_.has_value());
  if (weight == 0) return;
  if (std::isnan(score)) {
    ++nan_scores_;
    return;
  }
  entries_.Add(EntryOf(KeyOf(score), label > 0.5f ? weight : -weight));
}

absl::Status Auc::Merge(Collective* collective) {
  if (collective->size() > 1) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> borders, FindBorders(collective));
    RETURN_IF_ERROR(ExchangeEntries(
        collective,
        [&borders](Entry entry) {
          return std::upper_bound(borders.begin(), borders.end(), ScoreKeyOf(entry)) -
                 borders.begin();
        },
        SortedBlocks<Entry>(&JoinEqual), &entries_));
  }
  const Totals own = AddUp();
  std::string bytes;
  for (const long double value :
       {own.positives, own.negatives, own.won, static_cast<long double>(own.nan_scores)}) {
    Put(value, &bytes);
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> ranges, collective->AllGatherBytes(bytes));
  // Every rank adds up all ranges, beginning with the lowest scores, so all ranks get the same
  // bits.
  merged_.emplace();
  for (size_t rank = 0; rank < ranges.size(); ++rank) {
    const std::string& range = ranges[rank];
    if (range.size() != 4 * kPutBytes) {
      return absl::InvalidArgumentError(absl::StrCat("evaluation: nn_worker ", rank, " sent ",
                                                     range.size(), " bytes of an AUC, expected ",
                                                     4 * kPutBytes));
    }
    const long double positives = TakeAt(range, 0);
    merged_->won += TakeAt(range, 2 * kPutBytes) + positives * merged_->negatives;
    merged_->positives += positives;
    merged_->negatives += TakeAt(range, kPutBytes);
    merged_->nan_scores += static_cast<uint64_t>(TakeAt(range, 3 * kPutBytes));
  }
  entries_ = SortedBlocks<Entry>(&JoinEqual);
  return absl::OkStatus();
}

// Each rank should get an equal share of the entries. The first key of each share is found byte by
// byte, from the leading byte on: the entries whose keys begin with the bytes found so far are
// counted by their next byte. This divides even the entries of a model that gives nearly equal
// scores.
absl::StatusOr<std::vector<uint32_t>> Auc::FindBorders(Collective* collective) const {
  constexpr int kValues = 256;  // of a byte
  const int ranks = collective->size();
  std::vector<uint32_t> begins(ranks - 1, 0);  // of the keys, as far as they are found
  std::vector<double> below(ranks - 1, 0);     // entries with keys below all that begin so
  double all = 0;
  for (int shift = 24; shift >= 0; shift -= 8) {
    // The values in `begins` are the same on every rank, because the counts are.
    std::vector<uint32_t> counted = begins;
    counted.erase(std::unique(counted.begin(), counted.end()), counted.end());
    std::vector<double> counts(counted.size() * kValues, 0);
    entries_.ForEach([&](Entry entry) {
      const uint64_t key = ScoreKeyOf(entry);
      const auto begin = static_cast<uint32_t>(key >> (shift + 8));
      const auto at = std::lower_bound(counted.begin(), counted.end(), begin);
      if (at == counted.end() || *at != begin) return;
      ++counts[static_cast<size_t>(at - counted.begin()) * kValues + ((key >> shift) & 0xff)];
    });
    RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(counts)));
    if (shift == 24) {
      for (const double count : counts) all += count;
    }
    for (int rank = 1; rank < ranks; ++rank) {
      const double place = std::floor(all * rank / ranks);
      uint32_t& begin = begins[rank - 1];
      const size_t first =
          static_cast<size_t>(std::lower_bound(counted.begin(), counted.end(), begin) -
                              counted.begin()) *
          kValues;
      uint32_t value = 0;
      while (value + 1 < kValues && below[rank - 1] + counts[first + value] <= place) {
        below[rank - 1] += counts[first + value++];
      }
      begin = (begin << 8) | value;
    }
  }
  return begins;
}

Auc::Totals Auc::AddUp() {
  Totals totals;
  totals.nan_scores = nan_scores_;
  uint32_t key = 0;
  double positives = 0, negatives = 0;  // of `key`
  const auto end_of_key = [&] {
    totals.won += static_cast<long double>(positives) * (totals.negatives + negatives / 2.0L);
    totals.positives += positives;
    totals.negatives += negatives;
    positives = negatives = 0;
  };
  entries_.ForEachAscending([&](Entry entry) {
    if (ScoreKeyOf(entry) != key) end_of_key();
    key = ScoreKeyOf(entry);
    const double weight = WeightOf(entry);
    (weight > 0 ? positives : negatives) += std::abs(weight);
  });
  end_of_key();
  return totals;
}

MetricValue Auc::Compute() {
  const Totals totals = merged_.has_value() ? *merged_ : AddUp();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (totals.nan_scores > 0) return {nan, "a score is not a number"};
  if (totals.positives == 0) return {nan, "no positive sample"};
  if (totals.negatives == 0) return {nan, "no negative sample"};
  return {static_cast<double>(totals.won / (totals.positives * totals.negatives)), ""};
}

}  // namespace satrap
