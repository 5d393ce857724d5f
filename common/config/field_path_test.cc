#include "common/config/field_path.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class SetFieldTest : public testing::Test {
 protected:
  SetFieldTest() {
    TableConfig* user = job_.add_tables();
    user->set_name("user");
    user->add_segments()->set_name("embedding");
    job_.add_tables()->set_name("item");
  }
  std::string ErrorOf(absl::string_view assignment) {
    return std::string(SetField(assignment, &job_).message());
  }
  JobConfig job_;
};

TEST_F(SetFieldTest, SetsATopLevelScalar) {
  ASSERT_TRUE(SetField("seed=7", &job_).ok());
  EXPECT_EQ(job_.seed(), 7u);
}

TEST_F(SetFieldTest, SetsAFieldBelowAMessageThatWasAbsent) {
  ASSERT_TRUE(SetField("embedding_ps.replicas=4", &job_).ok());
  EXPECT_EQ(job_.embedding_ps().replicas(), 4);
}

TEST_F(SetFieldTest, PicksAnElementByTheValueOfAField) {
  ASSERT_TRUE(SetField("tables[name=user].segments[0].dim=8", &job_).ok());
  EXPECT_EQ(job_.tables(0).segments(0).dim(), 8);
}

TEST_F(SetFieldTest, PicksAnElementByPosition) {
  ASSERT_TRUE(SetField("tables[1].reserve_rows=5", &job_).ok());
  EXPECT_EQ(job_.tables(1).reserve_rows(), 5);
}

TEST_F(SetFieldTest, TakesEnumsByName) {
  ASSERT_TRUE(SetField("mode=SYNC", &job_).ok());
  EXPECT_EQ(job_.mode(), JobConfig::SYNC);
  EXPECT_THAT(ErrorOf("mode=FAST"), HasSubstr("HYBRID, SYNC"));
}

TEST_F(SetFieldTest, TakesStringsWithQuotesSpacesAndEqualSigns) {
  ASSERT_TRUE(SetField("data_root=/a \"b\"/c=d", &job_).ok());
  EXPECT_EQ(job_.data_root(), "/a \"b\"/c=d");
}

TEST_F(SetFieldTest, ReplacesARepeatedFieldByTheGivenElements) {
  job_.mutable_data()->add_train_files("old");
  ASSERT_TRUE(SetField("data.train_files=a,b", &job_).ok());
  ASSERT_EQ(job_.data().train_files_size(), 2);
  EXPECT_EQ(job_.data().train_files(1), "b");
}

TEST_F(SetFieldTest, ChoosesAMessageOfAOneofByAnEmptyValue) {
  ASSERT_TRUE(SetField("dense_optimizer.sgd=", &job_).ok());
  EXPECT_TRUE(job_.dense_optimizer().has_sgd());
}

TEST_F(SetFieldTest, NamesTheFieldsThereAreForAnUnknownOne) {
  EXPECT_THAT(ErrorOf("embedding_ps.replica=4"), HasSubstr("no field 'replica'"));
  EXPECT_THAT(ErrorOf("embedding_ps.replica=4"), HasSubstr("it has replicas, "));
}

TEST_F(SetFieldTest, SaysWhatWasProbablyMeant) {
  EXPECT_THAT(ErrorOf("epocs=3"), EndsWith("; did you mean epochs?"));
  EXPECT_THAT(ErrorOf("embedding_ps.replica=4"), EndsWith("; did you mean replicas?"));
  EXPECT_THAT(ErrorOf("tables[nam=user].reserve_rows=1"), EndsWith("; did you mean name?"));
  EXPECT_THAT(ErrorOf("mode=SINC"), EndsWith("; did you mean SYNC?"));
  EXPECT_THAT(ErrorOf("nothing_like_it=4"), Not(HasSubstr("did you mean")));
}

TEST_F(SetFieldTest, RefusesWhatIsNotAValueOfTheField) {
  EXPECT_THAT(ErrorOf("seed=seven"), HasSubstr("'seven' is not a value of seed"));
  EXPECT_THAT(ErrorOf("seed"), HasSubstr("expected path=value"));
  ::testing::internal::CaptureStderr();
  ErrorOf("seed=seven");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "the status says it all";
  EXPECT_THAT(ErrorOf("tables[name=nobody].reserve_rows=1"), HasSubstr("no element of tables"));
  EXPECT_THAT(ErrorOf("tables[9].reserve_rows=1"), HasSubstr("there are 2 elements"));
  EXPECT_THAT(ErrorOf("tables.reserve_rows=1"), HasSubstr("name an element in brackets"));
  EXPECT_THAT(ErrorOf("seed.x=1"), HasSubstr("not a message"));
}

TEST(ElementSelector, CallsALayerByItsNameAsSetTakesItAndOthersByPosition) {
  JobConfig job;
  for (const char* name : {"a.b", "", "twin", "twin"})
    job.mutable_model()->add_layers()->set_name(name);
  EXPECT_EQ(LayerSelector(job.model(), 0), "[name=a.b]");
  EXPECT_EQ(LayerSelector(job.model(), 1), "[1]");
  EXPECT_EQ(LayerSelector(job.model(), 2), "[2]");
  EXPECT_EQ(LayerSelector(job.model(), 3), "[3]");
  ASSERT_TRUE(
      SetField(absl::StrCat("model.layers", LayerSelector(job.model(), 0), ".inputs=x"), &job)
          .ok());
  EXPECT_EQ(job.model().layers(0).inputs(0), "x");
  EXPECT_EQ(ElementSelector(job.model(), ModelConfig::descriptor()->FindFieldByName("layers"), 0),
            "[name=a.b]");
  job.mutable_model()->add_tasks()->set_name("click");
  EXPECT_EQ(ElementSelector(job.model(), ModelConfig::descriptor()->FindFieldByName("tasks"), 0),
            "[0]");
}

TEST(FillDefaults, SpellsOutDefaultsOfPresentMessagesOnly) {
  JobConfig job;
  job.mutable_embedding_ps();
  FillDefaults(&job);
  EXPECT_TRUE(job.has_seed());
  EXPECT_TRUE(job.embedding_ps().has_shards());
  EXPECT_FALSE(job.has_nn_worker());
  EXPECT_FALSE(job.has_data_root()) << "a field without a declared default stays unset";
}

}  // namespace
}  // namespace satrap
