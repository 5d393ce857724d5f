#include "nn_worker/layer/layer_factory.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/config/field_path.h"
#include "common/config/testing/range_check.h"
#include "gmock/gmock.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The error for a layer in which `field` has `value`. `with`: other assignments, without which even
// good values would be refused.
std::string RefusalOf(const std::string& field, const std::string& value,
                      const std::vector<std::string>& with = {}) {
  LayerConfig config;
  AddElements(field, &config);
  for (const std::string& assignment : with) CHECK_OK(SetField(assignment, &config));
  CHECK_OK(SetField(absl::StrCat(field, "=", value), &config));
  return std::string(NewLayer(config).status().message());
}

TEST(LayerFactoryTest, EveryNumberOfALayerHasARange) {
  EXPECT_EQ(FieldsOf(BordersOf(LayerConfig::descriptor())),
            NumericFields(LayerConfig::descriptor()));
}

TEST(LayerFactoryTest, RefusesTheNumbersThatTheValidatorRefuses) {
  for (const BorderCase& border : BordersOf(LayerConfig::descriptor())) {
    const std::string problem = absl::StrCat(": must be ", border.range, ", got ");
    for (const std::string& value : border.good) {
      EXPECT_THAT(RefusalOf(border.field, value, border.with), Not(HasSubstr(": must be ")))
          << border.field << " " << value;
    }
    for (const std::string& value : border.bad) {
      EXPECT_THAT(RefusalOf(border.field, value, border.with), HasSubstr(problem)) << border.field;
    }
  }
}

TEST(LayerFactoryTest, ALayerHasAKindThatIsNoComposite) {
  EXPECT_THAT(NewLayer(LayerConfig()).status().message(), HasSubstr("has no kind"));
  EXPECT_THAT(RefusalOf("mlp.units", "4"), HasSubstr("mlp is a composite"));
}

}  // namespace
}  // namespace satrap
