#include "tests/benchmark/parse_work.h"

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/numeric/random.h"

namespace satrap {
namespace {

// The fields of one record: label, 13 numerics, 26 ids.
std::vector<std::string> MakeFields(SplitMix64* random) {
  std::vector<std::string> fields = {random->Below(4) == 0 ? "1" : "0"};
  for (int i = 0; i < 13; ++i) {
    fields.emplace_back();
    if (random->Below(4) == 0) continue;
    // Most counts are small; some have several digits.
    fields.back() = absl::StrCat(random->Below(uint64_t{1} << (1 + random->Below(16))));
  }
  for (int i = 0; i < 26; ++i) {
    fields.emplace_back();
    if (random->Below(8) == 0) continue;
    fields.back() = absl::StrFormat("%08x", static_cast<uint32_t>(random->Next()));
  }
  return fields;
}

void AddColumn(const std::string& name, ColumnConfig::Kind kind, CsvFormat* csv) {
  ColumnConfig* column = csv->add_columns();
  column->set_name(name);
  column->set_kind(kind);
}

}  // namespace

void WriteClicks(const std::string& path, ParseFormat format, int rows) {
  SplitMix64 random(1);
  std::ofstream file(path, std::ios::binary);
  for (int i = 0; i < rows; ++i) {
    const std::vector<std::string> fields = MakeFields(&random);
    switch (format) {
      case ParseFormat::kCriteo:
        file << absl::StrJoin(fields, "\t") << '\n';
        break;
      case ParseFormat::kCsv:
        file << absl::StrJoin(fields, ",") << '\n';
        break;
      case ParseFormat::kQuotedCsv:
        file << '"' << absl::StrJoin(fields, "\",\"") << "\"\n";
        break;
    }
  }
  CHECK(file.good()) << path;
}

JobConfig ParseJob(ParseFormat format) {
  JobConfig job;
  job.set_global_batch_size(4096);
  DataConfig* data = job.mutable_data();
  if (format == ParseFormat::kCriteo) {
    data->mutable_criteo_tsv();
  } else {
    AddColumn("label", ColumnConfig::LABEL, data->mutable_csv());
    for (int i = 1; i <= 13; ++i) {
      AddColumn(absl::StrCat("I", i), ColumnConfig::NUMERIC, data->mutable_csv());
    }
    for (int i = 1; i <= 26; ++i) {
      AddColumn(absl::StrCat("C", i), ColumnConfig::ID, data->mutable_csv());
    }
  }
  for (int i = 1; i <= 13; ++i) {
    NumericConfig* numeric = data->add_numerics();
    numeric->set_name(absl::StrCat("I", i));
    numeric->set_transform(NumericConfig::LOG1P);
  }
  for (int i = 1; i <= 26; ++i) data->add_features()->set_name(absl::StrCat("C", i));
  return job;
}

int64_t MakeAllBatches(BatchMaker* maker, uint32_t num_splits, uint32_t epoch,
                       const std::function<void()>& first) {
  int64_t samples = 0;
  maker->BeginEpoch(epoch);
  for (uint32_t split = 0; split < num_splits; ++split) maker->AddSplit(split);
  maker->EndSplits();
  std::vector<Part> parts;
  while (true) {
    const auto result = maker->MakeBatch(&parts);
    CHECK_OK(result.status());
    if (*result == BatchMaker::Result::kEnd) return samples;
    if (*result != BatchMaker::Result::kBatch) continue;
    if (samples == 0 && first != nullptr) first();
    for (const Part& part : parts) samples += part.header.part().samples();
  }
}

}  // namespace satrap
