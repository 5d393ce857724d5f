// The predictions that a PREDICT run writes: one file for each rank. Afterwards they are merged
// by position, with the bad records in their places, into run_dir/predictions.txt.
//
// run_dir/predictions/rank_R.bin, little-endian:
//   8 bytes   "SATPRED1"
//   a record: u32 split | u32 index in the block | u64 block | f64 prediction of each task
//   8 bytes   "SATPREND"
//
// (split, block, index) is the record's position in the data (ProvenanceRange in proto/hot.proto);
// the test stream is not shuffled, so the order of positions is the order of the file's records.
//
// With JobConfig.predict_outputs a record has the values of all outputs instead of those of tasks.
// The file does not say how many values a record has; the reader must know. Example with one value,
// record 5 of block 0 of split 0 with .25, 40 bytes:
//   53 41 54 50 52 45 44 31 | 00 00 00 00 | 05 00 00 00 | 00 00 00 00 00 00 00 00 |
//   00 00 00 00 00 00 d0 3f | 53 41 54 50 52 45 4e 44

#ifndef SATRAP_NN_WORKER_TRAINER_PREDICTIONS_H_
#define SATRAP_NN_WORKER_TRAINER_PREDICTIONS_H_

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/hot.pb.h"

namespace satrap {

struct Prediction {
  uint32_t split = 0;
  uint32_t index = 0;
  uint64_t block = 0;
  absl::InlinedVector<double, 1> values;  // by task, or of all outputs
};

// Writes the file of one rank. Not thread-safe.
class PredictionWriter {
 public:
  // Creates the file, and run_dir/predictions if it does not exist.
  static absl::StatusOr<std::unique_ptr<PredictionWriter>> Create(const std::string& run_dir,
                                                                  int rank, size_t num_tasks = 1);
  ~PredictionWriter();

  // `predictions`: [samples, num_tasks]. INVALID_ARGUMENT if the part's provenance does not have
  // one position for each sample, or the part is of a topic, whose positions count messages instead
  // of records; FAILED_PRECONDITION, naming the record, if a prediction is NaN.
  absl::Status Add(const PartDescription& part, absl::Span<const double> predictions);

  // Writes the end mark, without which readers refuse the file. REQUIRES: called once, after all
  // Adds
  absl::Status Close();

 private:
  PredictionWriter(std::string path, std::FILE* file, size_t num_tasks)
      : path_(std::move(path)), file_(file), num_tasks_(num_tasks) {}
  absl::Status WriteRecord(uint32_t split, uint32_t index, uint64_t block,
                           absl::Span<const double> values);
  absl::Status Write(const void* bytes, size_t size);

  const std::string path_;
  std::FILE* file_;  // null once closed
  const size_t num_tasks_;
};

// All predictions of a run with `num_ranks` ranks, by position. DATA_LOSS, naming the file, if a
// file is not complete, or a position occurs twice; NOT_FOUND without the files.
absl::StatusOr<std::vector<Prediction>> ReadPredictions(const std::string& run_dir, int num_ranks,
                                                        size_t num_tasks = 1);

// Writes run_dir/predictions.txt: one line for each record of the test stream, in the order of
// their positions. So line i is about record i of the file. A line has the predictions for the
// tasks, separated by tabs, or "nan" for each task if the loaders found the record to be bad. The
// bad records of the test stream are listed in run_dir/quarantine/gNNNN-loader-I.tsv
// (docs/formats.md), for I in [0, num_loaders) and this generation. A loader that found no bad
// record has no such file. Errors are those of ReadPredictions; DATA_LOSS, naming the file, if a
// line of a .tsv lacks the fields of a bad record; errors of reading and writing. REQUIRES: all
// loaders have read the whole stream
absl::Status WritePredictionsText(const std::string& run_dir, int num_ranks, int num_loaders,
                                  uint64_t generation = 1, size_t num_tasks = 1);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_TRAINER_PREDICTIONS_H_
