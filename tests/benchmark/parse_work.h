// The work of the parse benchmarks: a file of click records, and the loader's path from text to
// encoded batches. The records have Criteo's 40 columns, with a quarter of the numerics missing,
// and are the same in every format.

#ifndef SATRAP_TESTS_BENCHMARK_PARSE_WORK_H_
#define SATRAP_TESTS_BENCHMARK_PARSE_WORK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "data_loader/batch/batch_maker.h"
#include "proto/job.pb.h"

namespace satrap {

enum class ParseFormat { kCriteo, kCsv, kQuotedCsv };

// Writes a file of `rows` lines. CHECK-fails if this is not possible.
void WriteClicks(const std::string& path, ParseFormat format, int rows);

// A job that parses such files. The caller adds their paths.
JobConfig ParseJob(ParseFormat format);

// Makes all batches of an epoch, of splits 0 .. num_splits - 1, and returns the number of samples.
// `first`, if there is one, is called before the samples of the first batch are counted.
int64_t MakeAllBatches(BatchMaker* maker, uint32_t num_splits, uint32_t epoch,
                       const std::function<void()>& first = nullptr);

}  // namespace satrap

#endif  // SATRAP_TESTS_BENCHMARK_PARSE_WORK_H_
