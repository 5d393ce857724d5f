#include <string>
#include <utility>
#include <vector>

#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

constexpr char kFeature[] = " features { name: 'user' table: 'ids' }";

JobConfig CsvJob() {
  return JobWithData(absl::StrCat(R"(
      csv { columns { name: 'y' kind: LABEL } columns { name: 'user' kind: ID }
            columns { name: 'tags' kind: MULTI_ID } columns { name: 'age' kind: NUMERIC } }
      train_files: 'train.csv')",
                                  kFeature));
}

JobConfig CsvJobWithColumn(const char* column) {
  JobConfig job = CsvJob();
  CHECK_OK(ParseText(column, "column", job.mutable_data()->mutable_csv()->add_columns()));
  return job;
}

TEST(ValidateData, NamesTheFormatsThereAre) {
  EXPECT_EQ(ProblemsOf(JobWithData("")),
            "data: needs one of criteo_tsv, csv, libsvm, libffm, synthetic, record");
}

TEST(ValidateData, ClassesOfLibsvmAreSeveralNumbersEachOnce) {
  for (const std::string format : {"libsvm", "libffm"}) {
    const auto problems = [&format](const std::string& labels) {
      const bool libffm = format == "libffm";
      return ProblemsOf(JobWithData(absl::StrCat(format, " { ", libffm ? "num_fields: 1 " : "",
                                                 labels, " } train_files: 'a' features { name: '",
                                                 libffm ? "0" : "features", "' table: 'ids' }")));
    };
    EXPECT_EQ(problems("classes: [-1, 1]"), "");
    EXPECT_EQ(problems("classes: 1"),
              absl::StrCat("data.", format, ".classes: must be two or more, got 1"));
    EXPECT_EQ(problems("classes: [2, 4, 2]"),
              absl::StrCat("data.", format, ".classes[2]: 2 is taken"));
    EXPECT_EQ(problems("classes: [2, 4] numeric_label: true"),
              absl::StrCat("data.", format, ".numeric_label: excludes classes"));
    EXPECT_NE(problems("classes: [2, inf]"), "");
  }
}

TEST(ValidateData, AJobReadsFeaturesOrNumerics) {
  EXPECT_EQ(ProblemsOf(JobWithData("synthetic { interacting_features: 0 }")),
            "data: has neither features nor numerics");
  EXPECT_EQ(
      ProblemsOf(JobWithData("synthetic { interacting_features: 0 } numerics { name: 'I13' }")),
      "");
}

TEST(ValidateData, TrainingReadsTrainFiles) {
  EXPECT_EQ(ProblemsOf(CsvJob()), "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.train_files="}),
            "data.train_files: must not be empty (or set data.kafka)");
}

TEST(ValidateData, ScoringReadsTestFilesOrASplitOfTheTrainFiles) {
  for (const char* action : {"action=EVALUATE", "action=PREDICT"}) {
    const auto problems = [&](JobConfig job, const std::string& set = "seed=1") {
      return ProblemsOf(std::move(job), {action, "init_from=m", set});
    };
    EXPECT_EQ(problems(CsvJob()),
              "data.test_files: must not be empty to evaluate or predict; "
              "name some with --set data.test_files=FILE");
    EXPECT_EQ(problems(CsvJob(), "data.test_files=a"), "");
    EXPECT_EQ(problems(CsvJob(), "data.seeded_split.test_fraction=0.1"), "");
    EXPECT_EQ(problems(SmallJob()), "");
  }
}

TEST(ValidateData, FractionsOfASplitLeaveSomethingToTrain) {
  const std::string valid = "data.seeded_split.valid_fraction=";
  const std::string test = "data.seeded_split.test_fraction=";
  EXPECT_EQ(ProblemsOf(CsvJob(), {valid + "0", test + "0"}), "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {valid + "0.5", test + "0.25"}), "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {valid + "0.75", test + "0.25"}),
            "data.seeded_split: the fractions must sum to less than 1, got 0.75 and 0.25");
}

TEST(ValidateData, ACsvSeparatorIsOneByte) {
  ExpectValues(CsvJob(), "data.csv.separator", {";", "\t"}, {}, "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.csv.separator=;;"}),
            "data.csv.separator: must be one byte, got ';;'");
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.csv.separator="}),
            "data.csv.separator: must be one byte, got ''");
}

TEST(ValidateData, ACsvSeparatorIsNeitherALineEndNorAQuoteThatEnclosesFields) {
  JobConfig job = CsvJob();
  job.mutable_data()->mutable_csv()->set_separator("\n");
  EXPECT_EQ(ProblemsOf(job), "data.csv.separator: must not be the end of a line");
  job.mutable_data()->mutable_csv()->set_separator("\"");
  EXPECT_EQ(ProblemsOf(job),
            "data.csv.separator: must not be '\"', which encloses fields unless "
            "data.csv.quotes is false");
  EXPECT_EQ(ProblemsOf(job, {"data.csv.quotes=false"}), "");
}

TEST(ValidateData, RecordsOfSeveralLinesNeedQuotes) {
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.csv.multiline=true"}), "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.csv.multiline=true", "data.csv.quotes=false"}),
            "data.csv.multiline: needs data.csv.quotes");
  JobConfig tsv = CsvJob();
  tsv.mutable_data()->mutable_csv()->set_separator("\t");
  EXPECT_EQ(ProblemsOf(tsv, {"data.csv.multiline=true"}),
            "data.csv.multiline: needs `data.csv.quotes: true`, which is not the default of files "
            "separated by tabs");
  EXPECT_EQ(ProblemsOf(tsv, {"data.csv.multiline=true", "data.csv.quotes=true"}), "");
}

TEST(ValidateData, CsvColumnsHaveNamesOfTheirOwn) {
  EXPECT_EQ(ProblemsOf(CsvJobWithColumn("kind: ID")), "data.csv.columns[4]: has no name");
  EXPECT_EQ(ProblemsOf(CsvJobWithColumn("kind: IGNORE")), "");
  EXPECT_EQ(ProblemsOf(CsvJobWithColumn("name: 'age' kind: ID")),
            "data.csv.columns[4]: the name 'age' is taken");
}

TEST(ValidateData, SeparatorsWithinACsvColumnAreOneByte) {
  const std::string path = "data.csv.columns[2]";
  EXPECT_EQ(ProblemsOf(CsvJob(), {path + ".separator=^", path + ".value_separator=:"}), "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {path + ".separator="}),
            path + ".separator: must be one byte, got ''");
  EXPECT_EQ(ProblemsOf(CsvJob(), {path + ".separator=^^"}),
            path + ".separator: must be one byte, got '^^'");
  EXPECT_EQ(ProblemsOf(CsvJob(), {path + ".value_separator=::"}),
            path + ".value_separator: must be one byte or empty, got '::'");
}

TEST(ValidateData, ACsvRecordHasOneLabelAndAtMostOneWeightGroupAndTime) {
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.csv.columns[0].kind=IGNORE"}),
            "data.csv.columns: need exactly one LABEL, got 0");
  EXPECT_EQ(ProblemsOf(CsvJobWithColumn("name: 'z' kind: LABEL")),
            "data.csv.columns: need exactly one LABEL, got 2; model.tasks can name more");
  for (const char* kind : {"WEIGHT", "GROUP", "TIME"}) {
    JobConfig job = CsvJobWithColumn(absl::StrCat("name: 'a' kind: ", kind).c_str());
    EXPECT_EQ(ProblemsOf(job), "");
    *job.mutable_data()->mutable_csv()->add_columns() = job.data().csv().columns(4);
    EXPECT_EQ(ProblemsOf(job, {"data.csv.columns[5].name=b"}),
              absl::StrCat("data.csv.columns: take at most one ", kind, ", got 2"));
  }
}

TEST(ValidateData, LibffmHasFields) {
  EXPECT_EQ(ProblemsOf(JobWithData(
                "libffm { num_fields: 0 } train_files: 'a' features { name: '0' table: 'ids' }")),
            "data.libffm.num_fields"
            ": must be in [1, 65536], got 0\n"
            "data.features[0]: no id column '0'; there are none");
}

TEST(ValidateData, OnlyFeaturesThatThereAreInteract) {
  const JobConfig job = SmallJob();
  const std::string field = "data.synthetic.interacting_features";
  EXPECT_EQ(ProblemsOf(job, {field + "=2"}), "");
  EXPECT_EQ(ProblemsOf(job, {field + "=3"}),
            field + ": must be at most 2, the number of vocabulary_sizes, got 3");
}

TEST(ValidateData, ANumericHasANameOfItsOwnAndAColumn) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"data.numerics[0].name=", "data.numerics[0].column=I1"}),
            "data.numerics[0]: needs a name of its own, got ''");
  *job.mutable_data()->add_numerics() = job.data().numerics(0);
  EXPECT_EQ(ProblemsOf(job), "data.numerics[1]: needs a name of its own, got 'I1'");
  EXPECT_EQ(ProblemsOf(CsvJob(), {}), "");
  JobConfig csv = CsvJob();
  csv.mutable_data()->add_numerics()->set_name("user");
  EXPECT_EQ(ProblemsOf(csv), "data.numerics[0]: no numeric column 'user'; there are age");
}

TEST(ValidateData, BoundsTheConstantsOfTransforms) {
  const JobConfig job = SmallJob();
  const std::string path = "data.numerics[0]";
  EXPECT_EQ(ProblemsOf(job, {path + ".clamp=1e15"}), "");
  EXPECT_EQ(ProblemsOf(job, {path + ".clamp=0"}), path + ".clamp: must be above 0 or be left out");

  JobConfig standardise = job;
  CHECK_OK(SetField(path + ".transform=STANDARDISE", &standardise));
  ExpectPositive(standardise, path + ".stddev");
  ExpectFinite(standardise, path + ".mean");

  JobConfig min_max = job;
  CHECK_OK(SetField(path + ".transform=MIN_MAX", &min_max));
  EXPECT_EQ(ProblemsOf(min_max, {path + ".min=0.5", path + ".max=0.75"}), "");
  EXPECT_EQ(ProblemsOf(min_max, {path + ".min=0.5", path + ".max=0.5"}),
            path + ": max must be above min, got 0.5 and 0.5");
  EXPECT_EQ(ProblemsOf(min_max, {path + ".min=nan"}), path + ".min: must be finite, got nan");
  EXPECT_EQ(ProblemsOf(min_max, {path + ".max=inf"}), path + ".max: must be finite, got inf");
  // Constants that the transform does not use may have any value.
  EXPECT_EQ(ProblemsOf(job, {path + ".stddev=0", path + ".min=2", path + ".mean=nan"}), "");
}

TEST(ValidateData, AFeatureHasANameOfItsOwnAColumnAndATable) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"data.features[0].name=", "data.features[0].column=C1"}),
            "data.features[0]: needs a name of its own, got ''");
  EXPECT_EQ(ProblemsOf(job, {"data.features[1].name=C1"}),
            "data.features[1]: needs a name of its own, got 'C1'");
  EXPECT_EQ(ProblemsOf(job, {"data.features[1].column=C3"}),
            "data.features[1]: no id column 'C3'; there are C1, C2");
  EXPECT_EQ(ProblemsOf(job, {"data.features[1].table=nowhere"}),
            "data.features[1].table: no table 'nowhere'");
}

TEST(ValidateData, OnlyIdsThatAreNumbersFrom0CanBePreloaded) {
  const std::string preload = "data.features[0].preload_ids=";
  EXPECT_EQ(ProblemsOf(SmallJob(), {preload + "30"}), "");
  EXPECT_EQ(
      ProblemsOf(CsvJob(), {preload + "30"}),
      "data.features[0].preload_ids: must be 0, because the ids of this feature are hashes, and "
      "none is in [0, 30); give its column a vocabulary, so that its ids are numbers from 0, or "
      "leave preload_ids out: a row is made when its id is first seen");
  JobConfig with_vocabulary = CsvJob();
  for (ColumnConfig& column : *with_vocabulary.mutable_data()->mutable_csv()->mutable_columns()) {
    if (column.name() == "user") column.add_vocabulary("ann");
  }
  EXPECT_EQ(ProblemsOf(with_vocabulary, {preload + "1"}), "");
  EXPECT_EQ(
      ProblemsOf(with_vocabulary, {preload + "2"}),
      "data.features[0].preload_ids: must be at most 1, the number of ids of this feature, got 2");
  const std::vector<std::string> buckets = {"data.features[0].column=age",
                                            "data.features[0].bucketize.boundaries=18"};
  EXPECT_EQ(ProblemsOf(CsvJob(), {buckets[0], buckets[1], preload + "2"}), "");
  EXPECT_NE(ProblemsOf(CsvJob(), {buckets[0], buckets[1], preload + "3"}), "");
  const JobConfig criteo = JobWithData(R"(
      criteo_tsv {} train_files: 'day_0' features { name: 'C1' table: 'ids' preload_ids: 5 })");
  EXPECT_NE(ProblemsOf(criteo), "");
}

TEST(ValidateData, AFeatureMadeOfANumericReadsANumericColumn) {
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.features[0].column=age", "data.features[0].criteo_x4="}),
            "");
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.features[0].criteo_x4="}),
            "data.features[0]: no numeric column 'user'; there are age");
}

TEST(ValidateData, ColumnsAreNamedUpToForty) {
  JobConfig job = SmallJob();
  SyntheticFormat* synthetic = job.mutable_data()->mutable_synthetic();
  while (synthetic->vocabulary_sizes_size() < 40) synthetic->add_vocabulary_sizes(5);
  EXPECT_THAT(ProblemsOf(job, {"data.features[1].column=x"}), testing::EndsWith(", C39, C40"));
  synthetic->add_vocabulary_sizes(5);
  EXPECT_THAT(ProblemsOf(job, {"data.features[1].column=x"}), testing::EndsWith(", C40, ..."));
}

TEST(ValidateData, BoundariesOfBucketsAscend) {
  const std::string field = "data.features[0].bucketize.boundaries";
  const auto problems = [&](const std::string& values) {
    return ProblemsOf(CsvJob(), {"data.features[0].column=age", field + "=" + values});
  };
  EXPECT_EQ(problems("1,2.5,2.5"), "");
  const std::string problem = field + ": must be ascending and not empty, got ";
  EXPECT_EQ(ProblemsOf(CsvJob(), {"data.features[0].column=age", "data.features[0].bucketize="}),
            problem + "[]");
  EXPECT_EQ(problems("2,1"), problem + "[2, 1]");
  EXPECT_EQ(problems("1,nan"), field + "[1]: must be finite, got nan");
}

TEST(ValidateData, ASequenceHasALengthAndIsSentAsRows) {
  JobConfig job = SmallJob();
  EXPECT_EQ(ProblemsOf(job, {"data.features[0].max_length=0"}), "");
  CHECK_OK(SetField("data.features[0].pooling=NONE", &job));
  ExpectRange(job, "data.features[0].max_length", 1, 65536);
  EXPECT_EQ(ProblemsOf(job, {"data.features[0].transfer=ROWS"}), "");
  EXPECT_EQ(ProblemsOf(job, {"data.features[0].transfer=POOLED"}),
            "data.features[0].transfer: POOLED is not possible with pooling NONE");
  EXPECT_THAT(ProblemsOf(job, {"tables[0].segments[0].name=length"}),
              testing::HasSubstr("data.features[0].pooling: NONE makes a model input"));
}

TEST(ValidateData, FeaturesOfOneIdSpaceShareATable) {
  JobConfig job = SmallJob();
  CHECK_OK(ParseText("name: 'other' id: 1 segments { name: 'linear' dim: 1 }", "table",
                     job.add_tables()));
  CHECK_OK(SetField("data.features[0].id_space=x", &job));
  CHECK_OK(SetField("data.features[1].id_space=x", &job));
  EXPECT_EQ(ProblemsOf(job), "");
  EXPECT_EQ(ProblemsOf(job, {"data.features[1].table=other"}),
            "data.features[1]: id space 'x' is in table 'ids' already");
}

TEST(ValidateData, ACrossTakesOneIdOfEachOfItsColumns) {
  const auto problems = [](const char* fields) {
    JobConfig job = CsvJobWithColumn("name: 'item' kind: ID");
    CHECK_OK(ParseText(absl::StrCat("name: 'cross' table: 'ids' ", fields), "feature",
                       job.mutable_data()->add_features()));
    return ProblemsOf(job);
  };
  const std::string field = "data.features[1].cross_columns";
  EXPECT_EQ(problems("cross_columns: 'user' cross_columns: 'item'"), "");
  EXPECT_EQ(problems("cross_columns: 'user'"), field + " (how many): must be in [2, 16], got 1");
  EXPECT_EQ(problems("cross_columns: 'user' cross_columns: 'age'"),
            field + ": no id column 'age'; there are user, item, tags");
  EXPECT_EQ(
      problems("cross_columns: 'user' cross_columns: 'tags'"),
      field + ": column 'tags' may have several ids, but a cross takes one id of each column");
  for (const char* other : {"column: 'user'", "criteo_x4 {}"}) {
    EXPECT_EQ(problems(absl::StrCat("cross_columns: 'user' cross_columns: 'item' ", other).c_str()),
              "data.features[1]: must not set `column`, `bucketize` or `criteo_x4`, because it has "
              "`cross_columns`");
  }
}

}  // namespace
}  // namespace satrap
