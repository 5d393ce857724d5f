// Quoted CSV: from reading the file to the parts and the quarantine.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/config/text_format.h"
#include "common/numeric/random.h"
#include "common/rpc/payload.h"
#include "common/testing/temp_dir.h"
#include "data_loader/batch/batch_maker.h"
#include "data_loader/batch/testing/batch_maker_testing.h"
#include "data_loader/parser/string_id.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"(
  global_batch_size: 64
  nn_worker { replicas: 2 }
  data {
    csv {
      header: true
      columns { name: "label" kind: LABEL } columns { name: "user" kind: ID missing_values: "?" }
      columns { name: "tags" kind: MULTI_ID value_separator: ":" }
      columns { name: "age" kind: NUMERIC } columns { name: "note" }
      columns { name: "w" kind: WEIGHT } columns { name: "g" kind: GROUP }
      columns { name: "t" kind: TIME }
    }
    train_files: "data"
    shuffle_rows: 100
    numerics { name: "age" transform: LOG1P }
    features { name: "user" }
    features { name: "tags" }
  })";

std::string Quoted(const std::string& field) {
  return absl::StrCat("\"", absl::StrReplaceAll(field, {{"\"", "\"\""}}), "\"");
}

class CsvQuotesTest : public testing::Test {
 protected:
  CsvQuotesTest() {
    EXPECT_TRUE(ParseText(kJob, "job", &job_).ok());
    job_.set_data_root(dir_.path());
  }
  // Reads a file with the content `text` for one epoch. Returns header and payload of every part.
  std::vector<std::string> PartsOf(const std::string& text) {
    dir_.Write("data", text);
    ReadProgress::Options options;
    options.quarantine_dir = dir_.path() + "/quarantine";
    ReadProgress progress(options);
    const auto spec = StreamSpec::Make(job_, TRAIN_STREAM, &progress);
    EXPECT_TRUE(spec.ok()) << spec.status();
    num_splits_ = (*spec)->splits.size();
    const auto maker = NewBatchMaker(*spec);
    std::vector<std::string> parts;
    for (std::vector<uint64_t>& ids : ids_) ids.clear();
    for (const std::vector<Part>& batch : RunEpoch(**spec, maker.get(), 0)) {
      for (const Part& part : batch) {
        parts.push_back(
            part.header.SerializeAsString() +
            std::string(reinterpret_cast<const char*>(part.payload.data()), part.payload.size()));
        for (int i = 0; i < part.header.features_size(); ++i) {
          const FeatureIds& feature = part.header.features(i);
          const auto ids =
              rpc::SectionView<uint64_t>(part.payload, feature.ids(), feature.num_ids(), "ids");
          EXPECT_TRUE(ids.ok()) << ids.status();
          ids_[i].insert(ids_[i].end(), ids->begin(), ids->end());
        }
      }
    }
    records_ = progress.Snapshot().records();
    num_bad_ = progress.quarantined();
    return parts;
  }
  // The fields of line number `line` of the .tsv.
  std::vector<std::string> BadPlace(size_t line) const {
    const std::vector<std::string> lines = absl::StrSplit(
        TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.tsv"), '\n', absl::SkipEmpty());
    if (line >= lines.size()) return {};
    return absl::StrSplit(lines[line], '\t');
  }

  TempDir dir_;
  JobConfig job_;
  // Set by the last call of PartsOf.
  size_t num_splits_ = 0;
  std::vector<uint64_t> ids_[2];  // of the two features, in the order of the parts
  uint64_t records_ = 0;
  uint64_t num_bad_ = 0;
};

constexpr char kHeader[] = "label,user,tags,age,note,w,g,t";

std::vector<std::string> FieldsOfRecord(int i) {
  return {absl::StrCat(i % 3 == 0 ? 1 : 0),
          i % 7 == 0    ? ""
          : i % 11 == 0 ? "?"
                        : absl::StrCat("user ", i % 50),
          i % 5 == 0 ? "" : absl::StrCat("a:0.5|b", i % 4, ":", i),
          i % 6 == 0 ? "" : absl::StrCat(i, ".25"),
          "nothing",
          absl::StrCat(1 + i % 2, ".5"),
          absl::StrCat("group", i / 10),
          absl::StrCat(1700000000 + i)};
}

TEST_F(CsvQuotesTest, AQuotedFileHasTheBitsOfTheSameFileWithoutQuotes) {
  std::string plain = absl::StrCat(kHeader, "\n");
  std::string quoted = "\xef\xbb\xbf\"label\",user,tags,\"age\",note,w,g,t\r\n";
  std::string half_quoted = absl::StrCat(kHeader, "\n");
  SplitMix64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::vector<std::string> fields = FieldsOfRecord(i);
    std::vector<std::string> all;
    std::vector<std::string> some;
    for (const std::string& field : fields) {
      all.push_back(Quoted(field));
      some.push_back(random.Below(2) == 0 ? Quoted(field) : field);
    }
    all[4] = Quoted("a column that is ignored, with \"quotes\"");
    absl::StrAppend(&plain, absl::StrJoin(fields, ","), "\n");
    absl::StrAppend(&quoted, absl::StrJoin(all, ","), i == 999 ? "" : "\r\n");
    absl::StrAppend(&half_quoted, absl::StrJoin(some, ","), "\n");
  }
  const std::vector<std::string> parts = PartsOf(plain);
  EXPECT_EQ(records_, 1000u);
  EXPECT_EQ(parts.size(), 2u * 16);
  EXPECT_TRUE(PartsOf(quoted) == parts);
  EXPECT_TRUE(PartsOf(half_quoted) == parts);
  job_.mutable_data()->mutable_csv()->set_multiline(true);
  for (const std::string* text : {&plain, &quoted, &half_quoted}) {
    EXPECT_TRUE(PartsOf(*text) == parts);
    EXPECT_EQ(num_bad_, 0u);
  }
}

TEST_F(CsvQuotesTest, SplitsOfAQuotedFileHoldEachRecordOnce) {
  std::string text = absl::StrCat(kHeader, "\n");
  std::vector<uint64_t> expected;
  for (int i = 0; i < 200; ++i) {
    const std::string user = absl::StrCat("user, \"", i, "\"");
    absl::StrAppend(&text, "1,", Quoted(user), ",,,\"", std::string(i % 30, ','), "\",1,,1\n");
    expected.push_back(StringId(user));
  }
  std::sort(expected.begin(), expected.end());
  for (const int64_t split_bytes : {1, 7, 50, 1000, 1 << 20}) {
    job_.mutable_data()->set_split_bytes(split_bytes);
    PartsOf(text);
    std::sort(ids_[0].begin(), ids_[0].end());
    EXPECT_TRUE(ids_[0] == expected) << split_bytes;
    EXPECT_EQ(num_splits_, (text.size() + static_cast<size_t>(split_bytes) - 1) / split_bytes);
    EXPECT_EQ(num_bad_, 0u);
  }
}

TEST_F(CsvQuotesTest, AnOpenQuoteCostsOneRecordWhetherOrNotRecordsMaySpanLines) {
  std::string text = absl::StrCat(kHeader, "\n1,a,,,,1,,1\n1,\"open,,,,1,,1\n");
  for (int i = 0; i < 50; ++i) absl::StrAppend(&text, "0,b,,,,1,,1\n");
  for (const bool multiline : {false, true}) {
    job_.mutable_data()->mutable_csv()->set_multiline(multiline);
    PartsOf(text);
    EXPECT_EQ(records_, 51u);
    EXPECT_EQ(num_bad_, 1u);
    const std::vector<std::string> place = BadPlace(0);
    ASSERT_EQ(place.size(), 8u);
    EXPECT_EQ(place[1], "43");  // offset
    EXPECT_EQ(place[2], "3");   // line
    EXPECT_EQ(place[4], multiline
                            ? R"(a quote is not closed by the end of the file or within 1 MiB in )"
                              R"(column 'user': '\"open,,,,1,,1')"
                            : R"(a quote is not closed on its line in column 'user': )"
                              R"('\"open,,,,1,,1'; only data.csv.multiline allows that)");
    EXPECT_EQ(place[7], "1");  // one good record before it
    EXPECT_EQ(TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.txt"), "1,\"open,,,,1,,1\n");
  }
}

TEST_F(CsvQuotesTest, ABadRecordOfSeveralLinesIsKeptOnOneLine) {
  job_.mutable_data()->mutable_csv()->set_multiline(true);
  PartsOf(absl::StrCat(kHeader, "\n2,\"a\\b\r\nc\nd\",,,,1,,1\n1,a,,,,1,,1\n3,x\n"));
  EXPECT_EQ(records_, 1u);
  EXPECT_EQ(num_bad_, 2u);
  EXPECT_EQ(TempDir::Read(dir_.path() + "/quarantine/g0001-loader-0.txt"),
            "2,\"a\\\\b\\r\\nc\\nd\",,,,1,,1\n3,x\n");
  EXPECT_EQ(BadPlace(0)[2], "2");
  EXPECT_EQ(BadPlace(1)[2], "6") << "the lines of a record count";
}

TEST_F(CsvQuotesTest, RandomRecordsAreReadBackAsTheyWere) {
  CsvFormat* csv = job_.mutable_data()->mutable_csv();
  csv->set_multiline(true);
  job_.mutable_data()->set_shuffle_rows(0);
  job_.mutable_data()->mutable_features(1)->set_name("note");
  csv->mutable_columns(4)->set_kind(ColumnConfig::ID);
  csv->mutable_columns(1)->clear_missing_values();
  const std::string alphabet = "\"\",,\n\r\\ ab";
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SplitMix64 random(seed);
    // Returns the value of a random field, and sets `*written` to one way to write it in the file.
    const auto make_field = [&](std::string* written) {
      std::string field;
      const uint64_t size = random.Below(12);
      for (uint64_t i = 0; i < size; ++i) field += alphabet[random.Below(alphabet.size())];
      const bool needs_quotes =
          absl::StartsWith(field, "\"") || field.find_first_of(",\r\n") != std::string::npos;
      *written = needs_quotes || random.Below(2) == 0 ? Quoted(field) : field;
      return StringId(field);
    };
    std::string text = absl::StrCat(kHeader, "\n");
    std::vector<uint64_t> users;
    std::vector<uint64_t> notes;
    for (int i = 0; i < 500; ++i) {
      std::string user;
      std::string note;
      users.push_back(make_field(&user));
      notes.push_back(make_field(&note));
      absl::StrAppend(&text, "1,", user, ",,,", note, ",1,,1", i % 3 == 0 ? "\r\n" : "\n");
    }
    PartsOf(text);
    EXPECT_EQ(num_bad_, 0u) << seed;
    EXPECT_TRUE(ids_[0] == users) << seed;
    EXPECT_TRUE(ids_[1] == notes) << seed;
  }
}

}  // namespace
}  // namespace satrap
