#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using testing::HasSubstr;

constexpr char kFeature[] = " features { name: 'user' table: 'ids' }";
constexpr char kColumns[] =
    R"(columns { name: 'y' kind: LABEL } columns { name: 'user' kind: ID })";

// A job of `format` that trains from the topic "clicks".
JobConfig TopicJob(const std::string& format) {
  return JobWithData(
      absl::StrCat(format, " kafka { brokers: 'b:9092' topics: 'clicks' }", kFeature));
}
JobConfig CsvTopicJob() { return TopicJob(absl::StrCat("csv { ", kColumns, "}")); }
JobConfig RecordTopicJob() {
  JobConfig job = TopicJob(absl::StrCat("record { ", kColumns, "}"));
  job.mutable_data()->mutable_kafka()->set_format(KafkaConfig::RECORD);
  return job;
}
// TopicJob with a topic for validation as well.
JobConfig ValidTopicJob() {
  JobConfig job = CsvTopicJob();
  job.mutable_data()->mutable_valid_kafka()->add_topics("held-out");
  job.mutable_evaluation()->set_every_steps(100);
  return job;
}

std::string ResolvedProblems(JobConfig job, const std::vector<std::string>& sets = {}) {
  for (const std::string& set : sets) CHECK_OK(SetField(set, &job));
  ResolveJob(&job);
  return ProblemsOf(job);
}

KafkaOffset Offset(const std::string& topic, int partition, int64_t offset) {
  KafkaOffset message;
  message.set_topic(topic);
  message.set_partition(partition);
  message.set_offset(offset);
  return message;
}

TEST(ValidateKafka, TopicsTakeThePlaceOfTrainFiles) {
  EXPECT_EQ(ResolvedProblems(CsvTopicJob()), "");
  EXPECT_EQ(ResolvedProblems(RecordTopicJob()), "");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.train_files=a"}),
            "data.train_files: must be empty with data.kafka: a stream has either files or topics");
  JobConfig none = CsvTopicJob();
  none.mutable_data()->clear_kafka();
  EXPECT_EQ(ResolvedProblems(none), "data.train_files: must not be empty (or set data.kafka)");
}

TEST(ValidateKafka, AnEvaluationHasFilesOrTopics) {
  EXPECT_EQ(ResolvedProblems(ValidTopicJob()), "");
  EXPECT_EQ(
      ResolvedProblems(ValidTopicJob(), {"data.valid_files=v"}),
      "data.valid_files: must be empty with data.valid_kafka: a stream has either files or topics");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.test_files=t"}), "");
}

TEST(ValidateKafka, TrainingReadsFromTheFirstMessageForEver) {
  JobConfig job = ValidTopicJob();
  ResolveJob(&job);
  EXPECT_EQ(job.data().kafka().start().at(), KafkaStart::EARLIEST);
  EXPECT_EQ(job.data().kafka().end().at(), KafkaEnd::NEVER);
  EXPECT_EQ(job.data().valid_kafka().start().at(), KafkaStart::EARLIEST);
  EXPECT_EQ(job.data().valid_kafka().end().at(), KafkaEnd::AT_START);
}

TEST(ValidateKafka, EvaluationTopicsTakeWhatTheyDoNotSayFromTheTrainingsTopics) {
  JobConfig job = RecordTopicJob();
  KafkaConfig* const kafka = job.mutable_data()->mutable_kafka();
  kafka->add_columns()->set_name("key");
  kafka->add_settings()->set_name("client.id");
  job.mutable_data()->mutable_test_kafka()->add_topics("test");
  ResolveJob(&job);
  const KafkaConfig& test = job.data().test_kafka();
  EXPECT_EQ(test.brokers(0), "b:9092");
  EXPECT_EQ(test.settings(0).name(), "client.id");
  EXPECT_EQ(test.columns(0).name(), "key");
  EXPECT_EQ(test.format(), KafkaConfig::RECORD);
  EXPECT_EQ(test.topics_size(), 1);
  // Settings that test_kafka has itself are not replaced.
  CHECK_OK(SetField("data.test_kafka.brokers=c:1", &job));
  CHECK_OK(SetField("data.test_kafka.format=LINE", &job));
  ResolveJob(&job);
  EXPECT_EQ(job.data().test_kafka().brokers(0), "c:1");
  EXPECT_EQ(job.data().test_kafka().format(), KafkaConfig::LINE);
}

TEST(ValidateKafka, AnEvaluationEnds) {
  EXPECT_EQ(ResolvedProblems(ValidTopicJob(), {"data.valid_kafka.end.at=NEVER"}),
            "data.valid_kafka.end.at: must not be NEVER: an evaluation reads all of its records");
}

TEST(ValidateKafka, BrokersAndSettingsAreCheckedByTheirOwnRules) {
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.kafka.brokers=b"}),
            "data.kafka.brokers[0]: must be HOST:PORT, got \"b\"");
  JobConfig job = CsvTopicJob();
  KafkaSetting* const setting = job.mutable_data()->mutable_kafka()->add_settings();
  setting->set_name("auto.offset.reset");
  setting->set_value("latest");
  EXPECT_THAT(ResolvedProblems(job),
              HasSubstr("data.kafka.settings[name=auto.offset.reset]: must not be set"));
  setting->set_name("sasl.password");
  EXPECT_THAT(ResolvedProblems(job), HasSubstr("is a secret: give it as file:PATH or env:NAME"));
  EXPECT_THAT(ResolvedProblems(CsvTopicJob(), {"data.kafka.start.at=EARLIEST",
                                               "data.kafka.start.time=2026-05-01T00:00:00Z"}),
              HasSubstr("data.kafka.start: must have exactly one of"));
  EXPECT_THAT(ResolvedProblems(CsvTopicJob(), {"data.kafka.end.time=tomorrow"}),
              HasSubstr("data.kafka.end.time: \"tomorrow\" is not a time"));
}

TEST(ValidateKafka, AnOffsetIsThatOfATopicOfTheStreamAndNamedOnce) {
  JobConfig job = CsvTopicJob();
  KafkaStart* const start = job.mutable_data()->mutable_kafka()->mutable_start();
  *start->add_offsets() = Offset("clicks", 0, 5);
  *start->add_offsets() = Offset("clicks", 1, 5);
  EXPECT_EQ(ResolvedProblems(job), "");
  *start->add_offsets() = Offset("clicks", 0, 7);
  EXPECT_EQ(ResolvedProblems(job), "data.kafka.start.offsets[2]: names clicks/0 a second time");
  *start->mutable_offsets(2) = Offset("views", 0, 7);
  EXPECT_EQ(ResolvedProblems(job),
            "data.kafka.start.offsets[2].topic: must be one of the stream's topics, got views");
  // The validator cannot know which topics a pattern matches.
  EXPECT_EQ(ResolvedProblems(job, {"data.kafka.topic_pattern=v*"}), "");
}

TEST(ValidateKafka, ThereIsSomethingBetweenStartAndEnd) {
  EXPECT_THAT(
      ResolvedProblems(CsvTopicJob(), {"data.kafka.start.at=LATEST", "data.kafka.end.at=AT_START"}),
      HasSubstr("data.kafka.end.at: must not be AT_START with start LATEST"));
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.kafka.start.time=2026-05-01T00:00:00Z",
                                             "data.kafka.end.time=2026-05-01T00:00:00Z"}),
            "data.kafka.end.time: must be after start.time (2026-05-01T00:00:00Z), got "
            "2026-05-01T00:00:00Z");
  JobConfig job = CsvTopicJob();
  KafkaConfig* const kafka = job.mutable_data()->mutable_kafka();
  *kafka->mutable_start()->add_offsets() = Offset("clicks", 3, 10);
  *kafka->mutable_end()->add_offsets() = Offset("clicks", 3, 10);
  EXPECT_EQ(ResolvedProblems(job), "");
  kafka->mutable_end()->mutable_offsets(0)->set_offset(9);
  EXPECT_EQ(ResolvedProblems(job),
            "data.kafka.end.offsets[0].offset: must be at least the offset at which clicks/3 "
            "starts (10), got 9");
}

TEST(ValidateKafka, LinesNeedATextFormatWithoutHeadersAndRecordsOfSeveralLines) {
  for (const char* format : {"LINE", "LINES"}) {
    const std::string set = absl::StrCat("data.kafka.format=", format);
    for (const char* text : {"criteo_tsv {}", "libsvm {}", "libffm { num_fields: 1 }"}) {
      const std::string column = std::string(text) == "criteo_tsv {}" ? "C1"
                                 : std::string(text) == "libsvm {}"   ? "features"
                                                                      : "0";
      EXPECT_EQ(ResolvedProblems(TopicJob(text), {set, "data.features[0].column=" + column}), "");
    }
    EXPECT_EQ(ResolvedProblems(RecordTopicJob(), {set}),
              absl::StrCat("data.kafka.format: must be RECORD with data.record, got ", format));
    EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {set, "data.csv.header=true"}),
              absl::StrCat("data.csv.header: must be false with data.kafka.format ", format,
                           ": messages have no header"));
    EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {set, "data.csv.multiline=true"}),
              absl::StrCat("data.csv.multiline: must be false with data.kafka.format ", format,
                           ": a record is one line"));
  }
  JobConfig synthetic = SmallJob();
  synthetic.mutable_data()->mutable_kafka()->add_brokers("b:9092");
  synthetic.mutable_data()->mutable_kafka()->add_topics("clicks");
  EXPECT_EQ(ResolvedProblems(synthetic, {"data.kafka.end.at=AT_START"}),
            "data.kafka: is not possible with data.synthetic, which has no messages");
}

TEST(ValidateKafka, RecordsHaveTheColumnsOfTheJob) {
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.kafka.format=RECORD", "data.csv.header=true"}),
            "");
  EXPECT_EQ(
      ResolvedProblems(TopicJob("criteo_tsv {}"),
                       {"data.kafka.format=RECORD", "data.features[0].column=C1"}),
      "data.kafka.format: RECORD needs data.record or data.csv, whose columns a Record holds");
  EXPECT_EQ(ResolvedProblems(RecordTopicJob(), {"data.record.columns[0].kind=ID"}),
            "data.record.columns: need exactly one LABEL, got 0");
  EXPECT_EQ(ResolvedProblems(RecordTopicJob(), {"data.record.columns[1].vocabulary=a,b"}),
            "data.record.columns[1].vocabulary: must be empty, because a Record holds no text, got "
            "2");
  EXPECT_EQ(ResolvedProblems(RecordTopicJob(), {"data.valid_files=v", "evaluation.every_steps=9"}),
            "data.valid_files: must be empty with data.record, which is a format of messages only");
}

TEST(ValidateKafka, ColumnsOfMessagesAreReadByTheirNamesWhichNoOtherColumnHas) {
  JobConfig job = CsvTopicJob();
  KafkaConfig* const kafka = job.mutable_data()->mutable_kafka();
  kafka->add_columns()->set_name("session");
  kafka->add_columns()->set_name("sent");
  kafka->mutable_columns(1)->set_from(KafkaColumn::TIMESTAMP);
  EXPECT_EQ(ResolvedProblems(job, {"data.features[0].column=session"}), "");
  job.mutable_data()->add_numerics()->set_name("sent");
  EXPECT_EQ(ResolvedProblems(job), "");
  EXPECT_EQ(ResolvedProblems(job, {"data.features[0].column=sesion"}),
            "data.features[0]: no id column 'sesion'; there are user, session");
  EXPECT_EQ(ResolvedProblems(job, {"data.kafka.columns[0].name=y"}),
            "data.kafka.columns[0].name: must differ from the names of all other columns, got 'y'");
  EXPECT_EQ(
      ResolvedProblems(job, {"data.kafka.columns[0].name=sent"}),
      "data.kafka.columns[1].name: must differ from the names of all other columns, got 'sent'");
}

TEST(ValidateKafka, AllStreamsHaveTheColumnsOfTheTraining) {
  JobConfig job = ValidTopicJob();
  job.mutable_data()->mutable_kafka()->add_columns()->set_name("session");
  EXPECT_EQ(ResolvedProblems(job), "");
  EXPECT_EQ(ResolvedProblems(job, {"data.test_files=t"}),
            "data.kafka.columns: must be empty with data.test_files: files have no such columns, "
            "got session");
  job.mutable_data()->mutable_valid_kafka()->add_columns()->set_name("visit");
  EXPECT_EQ(ResolvedProblems(job),
            "data.valid_kafka.columns: must be those of data.kafka (session), got visit");
}

TEST(ValidateKafka, ASeededSplitNeedsFiles) {
  EXPECT_THAT(ResolvedProblems(CsvTopicJob(), {"data.seeded_split.test_fraction=0.1"}),
              HasSubstr("data.seeded_split: is not possible with topics"));
}

TEST(ValidateKafka, ATopicThatNeverEndsHasOneEpochAndValidatesByStepsOrTime) {
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"epochs=2"}),
            "epochs: must be 1 with data.kafka.end NEVER, which has no epochs, got 2");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"epochs=2", "data.kafka.end.at=AT_START"}), "");
  EXPECT_THAT(ResolvedProblems(ValidTopicJob(), {"evaluation.every_steps=0"}),
              HasSubstr("evaluation.every_seconds: or evaluation.every_steps must be positive"));
  EXPECT_EQ(ResolvedProblems(ValidTopicJob(),
                             {"evaluation.every_steps=0", "evaluation.every_seconds=60"}),
            "");
  EXPECT_EQ(
      ResolvedProblems(ValidTopicJob(), {"evaluation.every_steps=0", "data.kafka.end.at=AT_START"}),
      "");
}

TEST(ValidateKafka, AReproducibleRunReadsWhatIsWrittenAndWaitsForNothing) {
  const std::vector<std::string> reproducible = {"mode=SYNC", "reproducible=true"};
  const auto problems = [&](std::vector<std::string> sets) {
    sets.insert(sets.begin(), reproducible.begin(), reproducible.end());
    return ResolvedProblems(CsvTopicJob(), sets);
  };
  EXPECT_EQ(problems({"data.kafka.end.at=AT_START", "data.kafka.max_wait_ms=0"}), "");
  EXPECT_EQ(problems({"data.kafka.end.at=AT_START"}),
            "data.kafka.max_wait_ms: must be 0 with reproducible, because batches would depend on "
            "when messages arrive, got 1000");
  EXPECT_THAT(problems({"data.kafka.max_wait_ms=0"}),
              HasSubstr("data.kafka.end.at: must not be NEVER with reproducible"));
}

TEST(ValidateKafka, AnOrderedRunOfAnEndlessTopicDoesNotWaitForEver) {
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"mode=SYNC"}), "");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"mode=SYNC", "data.kafka.max_wait_ms=0"}),
            "data.kafka.max_wait_ms: must be positive in mode SYNC with end NEVER: a quiet topic "
            "would hold up cuts and stops, got 0");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"data.kafka.max_wait_ms=0"}), "");
}

TEST(ValidateKafka, ScoringReadsTestTopicsAndPredictionsAreThoseOfFiles) {
  JobConfig job = CsvTopicJob();
  job.mutable_data()->mutable_test_kafka()->add_topics("test");
  EXPECT_EQ(ResolvedProblems(job, {"action=EVALUATE", "init_from=m"}), "");
  EXPECT_EQ(ResolvedProblems(job, {"action=PREDICT", "init_from=m"}),
            "data.test_kafka: is not possible for predictions, which are made of files only");
  EXPECT_EQ(ResolvedProblems(CsvTopicJob(), {"action=EVALUATE", "init_from=m"}),
            "data.test_files: must not be empty to evaluate or predict; "
            "name some with --set data.test_files=FILE");
}

}  // namespace
}  // namespace satrap
