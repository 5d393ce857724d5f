#include "common/checkpoint/saved_features.h"

#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kJob[] = R"(
    data {
      csv {
        columns { name: "label" kind: LABEL }
        columns { name: "user" kind: ID }
        columns { name: "work" kind: ID vocabulary: "a" vocabulary: "b" }
        columns { name: "seen" kind: MULTI_ID }
        columns { name: "age" kind: NUMERIC }
      }
      features { name: "user" table: "users" }
      features { name: "work" table: "rest" }
      features { name: "seen" table: "rest" id_space: "items" }
      features { name: "old" column: "age" table: "rest" bucketize { boundaries: 30 } }
    }
    tables { name: "users" id: 0 }
    tables { name: "rest" id: 1 })";

JobConfig Job() {
  JobConfig job;
  EXPECT_TRUE(ParseText(kJob, "job", &job).ok());
  return job;
}

CheckpointManifest ModelOf(const JobConfig& job) {
  CheckpointManifest manifest;
  for (const TableConfig& table : job.tables()) manifest.add_tables()->set_name(table.name());
  *manifest.mutable_features() = SavedFeaturesOf(job);
  return manifest;
}

std::string RuleOf(const SavedFeature& feature, const std::string& field) {
  for (const IdRule& rule : feature.rules()) {
    if (rule.field() == field) return rule.value();
  }
  return "absent";
}

TEST(SavedFeaturesTest, KeepTheTableTheIdSpaceAndTheRulesOfEachFeature) {
  const auto features = SavedFeaturesOf(Job());
  ASSERT_EQ(features.size(), 4);
  EXPECT_EQ(features[0].feature(), "user");
  EXPECT_EQ(features[0].table(), "users");
  EXPECT_EQ(features[0].id_space(), "user") << "its name, by default";
  EXPECT_EQ(features[2].id_space(), "items");
  EXPECT_EQ(RuleOf(features[0], "ids"), "hashed text");
  EXPECT_EQ(RuleOf(features[0], "vocabulary"), "none");
  EXPECT_EQ(RuleOf(features[0], "trim"), "false");
  EXPECT_THAT(RuleOf(features[1], "vocabulary"), HasSubstr("2 words, hash "));
  EXPECT_THAT(RuleOf(features[3], "bucketize"), HasSubstr("1 boundaries, hash "));
  EXPECT_EQ(RuleOf(features[3], "trim"), "absent") << "numbers are not trimmed into other ids";
}

TEST(SavedFeaturesTest, AModelOfTheSameJobWarnsOfNothing) {
  const CheckpointManifest model = ModelOf(Job());
  EXPECT_THAT(IdWarnings(model, Job()), IsEmpty());
  EXPECT_THAT(FitOf(model, Job(), "rest").features, ElementsAre("work", "seen", "old"));
}

TEST(SavedFeaturesTest, ARenamedFeatureFindsNoRowsAndIsToldTheFieldThatJoinsThem) {
  JobConfig job = Job();
  job.mutable_data()->mutable_features(0)->set_name("member");
  job.mutable_data()->mutable_features(0)->set_column("user");
  const CheckpointManifest model = ModelOf(Job());
  EXPECT_THAT(FitOf(model, job, "users").features_without_rows, ElementsAre("member"));
  EXPECT_THAT(IdWarnings(model, job),
              ElementsAre(AllOf(HasSubstr("feature member"), HasSubstr("table 'users'"),
                                HasSubstr("the id space 'member'"), HasSubstr("rows of 'user'"),
                                HasSubstr("`id_space: \"user\"`"))));
  job.mutable_data()->mutable_features(0)->set_id_space("user");
  EXPECT_THAT(IdWarnings(model, job), IsEmpty());
  EXPECT_THAT(FitOf(model, job, "users").features, ElementsAre("member"));
}

TEST(SavedFeaturesTest, IdsThatComeAboutByAnotherRuleWarn) {
  const auto warnings = [](auto change) {
    JobConfig job = Job();
    change(&job);
    return IdWarnings(ModelOf(Job()), job);
  };
  EXPECT_THAT(warnings([](JobConfig* job) {
                job->mutable_data()->mutable_csv()->mutable_columns(2)->set_vocabulary(1, "c");
              }),
              ElementsAre(AllOf(HasSubstr("feature work: vocabulary is 2 words"),
                                HasSubstr("set vocabulary as in the model's job"))));
  EXPECT_THAT(warnings([](JobConfig* job) {
                job->mutable_data()->mutable_csv()->mutable_columns(1)->add_vocabulary("a");
              }),
              ElementsAre(HasSubstr("feature user: vocabulary is 1 words")));
  EXPECT_THAT(warnings([](JobConfig* job) { job->mutable_data()->mutable_csv()->set_trim(true); }),
              ElementsAre(HasSubstr("feature user: trim is true here, but was false"),
                          HasSubstr("feature work: trim"), HasSubstr("feature seen: trim")));
  EXPECT_THAT(warnings([](JobConfig* job) {
                job->mutable_data()->mutable_features(3)->mutable_bucketize()->add_boundaries(60);
              }),
              ElementsAre(HasSubstr("feature old: bucketize is 2 boundaries")));
  EXPECT_THAT(warnings([](JobConfig* job) { job->mutable_data()->mutable_synthetic(); }),
              ElementsAre(HasSubstr("feature user: ids is numbers"), HasSubstr("feature work: ids"),
                          HasSubstr("feature seen: ids")));
}

TEST(SavedFeaturesTest, OnlyTablesThatAreTakenWarn) {
  JobConfig job = Job();
  job.mutable_data()->mutable_features(0)->set_id_space("other");
  job.mutable_data()->mutable_features(1)->set_id_space("other");
  job.mutable_warm_start()->add_only("rest");
  EXPECT_THAT(IdWarnings(ModelOf(Job()), job), ElementsAre(HasSubstr("feature work")));
  // A run that only scores takes all tables, whatever `only` says.
  job.set_action(JobConfig::EVALUATE);
  EXPECT_EQ(IdWarnings(ModelOf(Job()), job).size(), 2u);
  CheckpointManifest model = ModelOf(Job());
  model.mutable_tables()->DeleteSubrange(0, 2);
  EXPECT_THAT(IdWarnings(model, job), IsEmpty()) << "the model has none of the tables";
}

TEST(SavedFeaturesTest, OfACutThatSaysNothingOfItsIdsNothingIsKnown) {
  CheckpointManifest model = ModelOf(Job());
  model.clear_features();
  EXPECT_THAT(IdWarnings(model, Job()), IsEmpty());
  const TableFit fit = FitOf(model, Job(), "rest");
  EXPECT_TRUE(fit.features.empty() && fit.features_without_rows.empty());
}

// The model and the job are of different builds, and only one of these builds knows the rule.
TEST(SavedFeaturesTest, ARuleThatOneSideDoesNotHaveIsNotCompared) {
  CheckpointManifest model = ModelOf(Job());
  IdRule* rule = model.mutable_features(2)->add_rules();
  rule->set_field("folding");
  rule->set_value("true");
  EXPECT_THAT(IdWarnings(model, Job()), IsEmpty());
}

}  // namespace
}  // namespace satrap
