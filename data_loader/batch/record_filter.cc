#include "data_loader/batch/record_filter.h"

#include "common/numeric/hash.h"
#include "common/numeric/random.h"
#include "data_loader/source/split_list.h"

namespace satrap {
namespace {

// The hashes of the shuffle have the same seed and arguments as those of the filter. This salt
// makes the two independent of each other.
constexpr uint64_t kSeededSplitSalt = 0x5eeded5b117ULL;

}  // namespace

RecordFilter::RecordFilter(const JobConfig& job, Stream stream)
    : seed_(Mix64(job.seed() ^ kSeededSplitSalt)) {
  const DataConfig& data = job.data();
  const bool test = IsSeededStream(data, TEST_STREAM);
  const bool valid = IsSeededStream(data, VALID_STREAM);
  const double test_end = test ? data.seeded_split().test_fraction() : 0;
  const double valid_end = test_end + (valid ? data.seeded_split().valid_fraction() : 0);
  switch (stream) {
    case TRAIN_STREAM:
      keeps_all_ = !test && !valid;
      from_ = valid_end;
      break;
    case VALID_STREAM:
      keeps_all_ = !valid;
      from_ = test_end;
      to_ = valid_end;
      break;
    case TEST_STREAM:
      keeps_all_ = !test;
      to_ = test_end;
      break;
  }
}

bool RecordFilter::KeepsByHash(uint32_t split, uint64_t position) const {
  const double hash = UniformDouble(RandomBits(seed_, split, position));
  return hash >= from_ && hash < to_;
}

}  // namespace satrap
