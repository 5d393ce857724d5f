#include "common/config/setting_ranges.h"

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/config/testing/range_check.h"
#include "common/config/testing/validation_check.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "proto/options.pb.h"
#include "proto/schedule.pb.h"

namespace satrap {
namespace {

using ::google::protobuf::FieldDescriptorProto;
using ::google::protobuf::FileDescriptorProto;
using ::testing::ElementsAre;

// What RangeText returns for a field of type `type` with the range `text`.
std::string TextOf(const std::string& text, FieldDescriptorProto::Type type) {
  FileDescriptorProto file;
  file.set_name("setting.proto");
  FieldDescriptorProto* const field = file.add_message_type()->add_field();
  file.mutable_message_type(0)->set_name("Setting");
  field->set_name("value");
  field->set_number(1);
  field->set_type(type);
  field->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
  CHECK_OK(ParseText(text, "range", field->mutable_options()->MutableExtension(range)));
  google::protobuf::DescriptorPool pool;
  return RangeText(pool.BuildFile(file)->message_type(0)->field(0));
}

TEST(SettingRanges, AreCalledAsErrorsCallThem) {
  const auto real = [](const char* text) {
    return TextOf(text, FieldDescriptorProto::TYPE_DOUBLE);
  };
  EXPECT_EQ(real(""), "finite");
  EXPECT_EQ(real("above: 0"), "finite and positive");
  EXPECT_EQ(real("low: 0"), "finite and not negative");
  EXPECT_EQ(real("low: 2"), "finite and at least 2");
  EXPECT_EQ(real("low: 0 below: 1"), "in [0, 1)");
  EXPECT_EQ(real("low: 0.5 high: 1"), "in [0.5, 1]");
  EXPECT_EQ(real("above: 0 below: 1"), "above 0 and below 1");
  EXPECT_EQ(real("above: 0 high: 1"), "above 0 and at most 1");
  EXPECT_EQ(real("low: -inf high: 1"), "at most 1");
  const auto whole = [](const char* text) {
    return TextOf(text, FieldDescriptorProto::TYPE_INT64);
  };
  EXPECT_EQ(whole("low: 1 high: 1152921504606846976"), "in [1, 1152921504606846976]");
  EXPECT_EQ(whole("low: 0"), "at least 0");
}

std::string Problem(const google::protobuf::Message& message) {
  Problems problems;
  CheckRanges(message, "at.", &problems);
  return std::string(problems.ToStatus().message());
}

TEST(SettingRanges, AreCheckedInMessagesThatAreSetWithTheDefaultsOfTheirFields) {
  LearningRateSchedule schedule;
  EXPECT_EQ(Problem(schedule), "");
  schedule.mutable_step();
  EXPECT_EQ(Problem(schedule), "  at.step.every_steps: must be in [1, 1152921504606846976], got 0");
  EXPECT_EQ(RangeStatus(schedule).message(),
            "step.every_steps: must be in [1, 1152921504606846976], got 0");
}

TEST(SettingRanges, AreCheckedForEachElementOfAList) {
  SyntheticFormat synthetic;
  synthetic.add_vocabulary_sizes(1);
  synthetic.add_vocabulary_sizes(0);
  EXPECT_EQ(Problem(synthetic), "  at.vocabulary_sizes[1]: must be in [1, 281474976710656], got 0");
}

TEST(SettingRanges, ALayerIsCalledByItsName) {
  ModelConfig model;
  for (const char* name : {"deep", "twin", "twin"}) {
    LayerConfig* const layer = model.add_layers();
    layer->set_name(name);
    layer->mutable_mlp()->add_units(name == std::string("deep") ? -5 : 1);
  }
  EXPECT_EQ(Problem(model), "  at.layers[name=deep].mlp.units[0]: must be at least 1, got -5");
  model.mutable_layers(0)->mutable_mlp()->set_units(0, 1);
  model.mutable_layers(2)->mutable_mlp()->set_units(0, 0);
  EXPECT_EQ(Problem(model), "  at.layers[2].mlp.units[0]: must be at least 1, got 0");
}

// Whether a line of `problems` says that the field is out of its range.
bool IsRefused(const std::string& problems, const BorderCase& border) {
  for (const absl::string_view line : absl::StrSplit(problems, '\n')) {
    if (absl::StartsWith(line, border.field) &&
        absl::StrContains(line, absl::StrCat(": must be ", border.range, ", got "))) {
      return true;
    }
  }
  return false;
}

// Tests that the validator checks the range of every field, in all sections of the job. Problems of
// other kinds do not matter here.
TEST(SettingRanges, AreThoseThatTheValidatorHoldsEveryFieldOfAJobTo) {
  const std::vector<BorderCase> borders = BordersOf(JobConfig::descriptor());
  EXPECT_GT(borders.size(), 200u);
  for (const BorderCase& border : borders) {
    JobConfig job = SmallJob();
    job.mutable_model()->mutable_layers(0)->clear_name();  // so that its position is in problems
    AddElements(border.field, &job);
    for (const std::string& value : border.good) {
      const std::string set = absl::StrCat(border.field, "=", value);
      EXPECT_FALSE(IsRefused(ProblemsOf(job, {set}), border)) << set;
    }
    for (const std::string& value : border.bad) {
      const std::string set = absl::StrCat(border.field, "=", value);
      EXPECT_TRUE(IsRefused(ProblemsOf(job, {set}), border)) << set;
    }
  }
}

// A number has no range if any value suits it, or if its range depends on another field.
TEST(SettingRanges, AreThoseOfEveryNumberOfAJobButAFew) {
  std::set<std::string> without = NumericFields(JobConfig::descriptor());
  for (const std::string& field : FieldsOf(BordersOf(JobConfig::descriptor()))) {
    EXPECT_EQ(without.erase(field), 1u) << field;
  }
  EXPECT_THAT(without,
              ElementsAre("data.features[0].max_length",  // only with pooling NONE
                          // These are checked only with the transform that uses them.
                          "data.numerics[0].max", "data.numerics[0].mean", "data.numerics[0].min",
                          "data.numerics[0].stddev",  //
                          "data.synthetic.seed", "seed"));
}

}  // namespace
}  // namespace satrap
