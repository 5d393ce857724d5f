// A ValueWatch examines the labels and numbers of a stream's records when they are first read. It
// warns of values that do not end the run, but with which training probably gives a bad model:
//
//   a record that RecordCheck refused, the first one of each kind
//   a column with a number whose distance from the median is over 1,000 times the 99.9th percentile
//   of all distances, after the transform and the clamp
//
// The largest and least number of a column are exact. The median and the percentile are those of up
// to 8,192 records, evenly spread over all records so far. Columns are judged at the end of the
// first epoch or pass. Because topics may have no end, they are also judged at 65,536 records and
// each time that the number of records has doubled since. Each loader judges only what it reads
// itself. A ValueWatch warns at most once of each column, and at most once of each kind of refused
// record.
//
// Thread-safe.

#ifndef SATRAP_DATA_LOADER_CHECK_VALUE_WATCH_H_
#define SATRAP_DATA_LOADER_CHECK_VALUE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "common/thread/mutex.h"
#include "data_loader/check/record_check.h"
#include "data_loader/parser/record_block.h"
#include "data_loader/transform/numeric_transform.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {

class ValueWatch {
 public:
  // REQUIRES: a validated job
  ValueWatch(const JobConfig& job, Stream stream);

  // Examines all rows of a block. `place` says where they come from: a path, or a topic partition.
  void Add(const RecordBlock& records, absl::string_view place);
  // Call for records that RecordCheck refused. Adds a warning about the first one of each kind of
  // fault. REQUIRES: fault is not kNone
  void NoteRefused(RecordCheck::Fault fault, absl::string_view place, absl::string_view reason);

  // Call when a reader of the first epoch or pass begins, and when it has ended. Columns are judged
  // when the last such reader has ended.
  void AddReader();
  void EndReader();

  // Adds the stream's warnings and counts to what the loader reports. Only the train stream adds
  // labels.
  void Report(LoaderProgress* progress) const;

 private:
  // The extremes of all numbers that are not missing.
  struct Extremes {
    uint64_t count = 0;
    float least = std::numeric_limits<float>::infinity();
    float largest = -std::numeric_limits<float>::infinity();

    // A template, so that each kind of column has a fast loop of its own. The loop runs over every
    // record.
    template <typename ValueOfRow>
    void Add(size_t rows, ValueOfRow value_of) {
      uint64_t known = 0;
      for (size_t row = 0; row < rows; ++row) {
        const float value = value_of(row);
        // False if the value is NaN.
        known += value == value;
        least = value < least ? value : least;
        largest = value > largest ? value : largest;
      }
      count += known;
    }
  };
  struct Column {
    enum Of { kNumeric, kLabel, kWeight };
    Of of;
    size_t index = 0;  // the index of a numeric column or a label
    std::string name;
    NumericTransform transform;
    Extremes extremes{};
    std::string least_at{}, largest_at{};  // where they were read
    std::vector<float> sample{};           // values as in the data; NaN if missing
    bool told = false;
  };
  static float ValueOf(const Column& column, const RecordBlock& records, size_t row);
  void AddColumn(const RecordBlock& records, absl::string_view place, Column* column)
      REQUIRES(mutex_);
  void TakeSample(const RecordBlock& records) REQUIRES(mutex_);
  void JudgeAll() REQUIRES(mutex_);
  void WarnOfOutliers(Column* column) REQUIRES(mutex_);
  void Warn(std::string warning) REQUIRES(mutex_);

  const Stream stream_;
  mutable Mutex mutex_;
  std::vector<Column> columns_ GUARDED_BY(mutex_);
  std::vector<Extremes> labels_ GUARDED_BY(mutex_);  // of the train stream, by LABEL column
  uint64_t rows_ GUARDED_BY(mutex_) = 0;
  uint64_t judged_rows_ GUARDED_BY(mutex_) = 0;  // rows_ when columns were last judged
  uint64_t stride_ GUARDED_BY(mutex_) = 1;       // every this many-th record is in the sample
  uint64_t clamped_ GUARDED_BY(mutex_) = 0;
  size_t readers_ GUARDED_BY(mutex_) = 0;
  absl::flat_hash_set<RecordCheck::Fault> told_ GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ GUARDED_BY(mutex_);
};

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_CHECK_VALUE_WATCH_H_
