// Checks which damaged records of Criteo TSV are bad, from reading the file to the quarantine.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/testing/temp_dir.h"
#include "data_loader/batch/batch_maker.h"

namespace satrap {
namespace {

using Damage = std::function<std::string(std::vector<std::string>)>;

std::string Join(const std::vector<std::string>& fields) { return absl::StrJoin(fields, "\t"); }

Damage SetField(size_t column, const std::string& value) {
  return [column, value](std::vector<std::string> fields) {
    fields[column] = value;
    return Join(fields);
  };
}

std::vector<std::string> GoodFields(int i) {
  std::vector<std::string> fields = {i % 4 == 0 ? "1" : "0"};
  for (int k = 0; k < 13; ++k) fields.push_back((i + k) % 5 == 0 ? "" : absl::StrCat(i * k % 997));
  for (int k = 0; k < 26; ++k)
    fields.push_back(absl::StrCat(absl::Hex(i * 31 + k, absl::kZeroPad8)));
  return fields;
}

// Lines that must be refused, each for another reason.
std::vector<Damage> Refused() {
  return {
      [](auto fields) {
        fields.pop_back();
        return Join(fields);
      },
      [](auto fields) {
        fields.push_back("x");
        return Join(fields);
      },
      [](auto fields) { return absl::StrJoin(fields, ","); },
      SetField(0, "2"),
      SetField(0, ""),
      SetField(5, "12ab"),
      SetField(13, "1e5"),
      SetField(20, std::string("a\0b", 3)),
      SetField(39, std::string(2 << 20, 'f')),
      [](auto) { return std::string(" "); },
  };
}

// Lines that look odd but must be accepted.
std::vector<Damage> Accepted() {
  return {
      [](auto fields) { return Join(fields) + "\r"; },
      SetField(30, "\xff\xfe\x80"),
      SetField(30, ""),
      SetField(1, "-3"),
      SetField(25, "a string that is longer than eight bytes"),
  };
}

struct DamagedText {
  std::string text;
  size_t num_good = 0, num_bad = 0, num_empty = 0;
};

DamagedText MakeDamagedText() {
  const std::vector<Damage> bad = Refused(), good = Accepted();
  DamagedText made;
  for (int i = 0; i < 1000; ++i) {
    const size_t kind = static_cast<size_t>(i / 2);
    std::string line = Join(GoodFields(i));
    if (i % 20 == 3) {
      line = bad[kind / 10 % bad.size()](GoodFields(i));
      ++made.num_bad;
    } else if (i % 20 == 7) {
      line = "";
      ++made.num_empty;
    } else {
      if (i % 20 == 11) line = good[kind / 10 % good.size()](GoodFields(i));
      ++made.num_good;
    }
    absl::StrAppend(&made.text, line, i == 999 ? "" : "\n");
  }
  return made;
}

TEST(CriteoDamageTest, TheQuarantineHoldsExactlyTheBadRecords) {
  const DamagedText made = MakeDamagedText();
  ASSERT_EQ(made.num_bad, 50u);

  for (const int64_t split_bytes : {int64_t{1} << 26, int64_t{5000}}) {
    TempDir dir;
    dir.Write("day", made.text);
    JobConfig job;
    job.set_data_root(dir.path());
    job.mutable_data()->mutable_criteo_tsv();
    job.mutable_data()->add_train_files("day");
    job.mutable_data()->add_features()->set_name("C1");
    job.mutable_data()->set_split_bytes(split_bytes);
    ReadProgress::Options options;
    options.quarantine_dir = dir.path() + "/quarantine";
    ReadProgress progress(options);
    const auto spec = *StreamSpec::Make(job, TRAIN_STREAM, &progress);
    const auto maker = NewBatchMaker(spec);
    size_t samples = 0;
    for (uint32_t epoch = 0; epoch < 2; ++epoch) {
      maker->BeginEpoch(epoch);
      for (uint32_t split = 0; split < spec->splits.size(); ++split) maker->AddSplit(split);
      maker->EndSplits();
      std::vector<Part> parts;
      while (true) {
        const auto result = maker->MakeBatch(&parts);
        ASSERT_TRUE(result.ok()) << result.status();
        if (*result == BatchMaker::Result::kEnd) break;
        for (const Part& part : parts) samples += part.header.part().samples();
      }
    }
    EXPECT_EQ(samples, 2 * made.num_good);
    EXPECT_EQ(progress.quarantined(), made.num_bad) << "once, however many epochs there are";
    EXPECT_EQ(progress.Snapshot().empty_lines(), made.num_empty) << "once too";
    const std::string places = TempDir::Read(dir.path() + "/quarantine/g0001-loader-0.tsv");
    const std::vector<std::string> rows = absl::StrSplit(places, '\n', absl::SkipEmpty());
    EXPECT_EQ(rows.size(), made.num_bad);
  }
}

}  // namespace
}  // namespace satrap
