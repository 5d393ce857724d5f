#include "common/config/setting_rules.h"

#include <string>
#include <vector>

#include "common/base/check.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

using ::testing::StartsWith;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  CHECK(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

struct Case {
  std::string config;
  std::string problem;  // how the problem begins; "": there is none
};

// Checks each case with the prefix "at.", as factories do.
template <typename Config>
void ExpectProblems(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const absl::Status status = CheckConfig(Parse<Config>(each.config), "at.");
    if (each.problem.empty()) {
      EXPECT_TRUE(status.ok()) << each.config << ": " << status;
    } else {
      EXPECT_THAT(std::string(status.message()), StartsWith("at." + each.problem)) << each.config;
    }
  }
}

TEST(SettingRulesTest, ATableNamesTheSegmentAndTheField) {
  ExpectProblems<TableConfig>(

      {{"id: 65535 segments { dim: 4096 }", ""},
       {"id: 65536 segments { dim: 1 }", "id: must be in [0, 65535], got 65536"},
       {"", "segments: must not be empty"},
       {"segments { dim: 1 } segments { dim: 4097 }", "segments[1].dim: must be in [1, 4096]"},
       {"segments { dim: 1 l2: -1 }", "segments[0].l2: must be finite and not negative, got -1"},
       {"segments { dim: 1 weight_bound: inf }", "segments[0].weight_bound: must be finite"},
       {"segments { dim: 1 l2_mode: DENSE }", "segments[0].l2_mode: DENSE needs semantics GLOBAL"},
       {"semantics: GLOBAL segments { dim: 1 l2_mode: DENSE }", ""},
       {"reserve_rows: -1 segments { dim: 1 }", "reserve_rows: must be in [0, "}});
}

TEST(SettingRulesTest, CowClipNeedsTheMeanOverTheBatchAndNoOtherClip) {
  ExpectProblems<TableConfig>(

      {{"segments { dim: 1 cow_clip {} }", ""},
       {"segments { dim: 1 cow_clip { floor: 0 } }", "segments[0].cow_clip.floor: must be finite"},
       {"segments { dim: 1 cow_clip {} gradient_clip_norm: 1 }",
        "segments[0].gradient_clip_norm: must be 0 with cow_clip, got 1"},
       {"normalisation: NONE segments { dim: 1 cow_clip {} }",
        "segments[0].cow_clip: needs normalisation GLOBAL_BATCH, got NONE"}});
}

TEST(SettingRulesTest, AnInitializerIsFiniteAndInOrder) {
  ExpectProblems<InitializerConfig>(
      {{"uniform { low: 1 high: 1 }", ""},
       {"uniform { low: 2 high: 1 }", "uniform: low must not be above high"},
       {"constant { value: nan }", "constant.value: must be finite"},
       {"normal { stddev: -1 }", "normal.stddev: must be finite and not"}});
}

TEST(SettingRulesTest, AnOptimizerNamesItsKindAndConstant) {
  ExpectProblems<SparseOptimizerConfig>(

      {{"learning_rate: 1", ""},
       {"learning_rate: 0", "learning_rate: must be finite and positive, got 0"},
       {"adam { beta2: 1 }", "adam.beta2: must be in [0, 1), got 1"},
       {"adagrad { epsilon: 0 }", "adagrad.epsilon: must be finite and positive"},
       {"momentum { dampening: 0.1 form: RATE_INSIDE }", "momentum.dampening: needs form"},
       {"sgd_l1 { l1: -1 }", "sgd_l1.l1: must be finite and not negative"},
       {"ftrl { beta: 0 }", "ftrl.beta: must be finite and positive"},
       {"decayed_adagrad { decay: 1 }", "decayed_adagrad.decay: must be in [0, 1)"}});
  ExpectProblems<DenseOptimizerConfig>(

      {{"", ""},
       {"parameters { l2: 1 }", "parameters[0].pattern: is needed"},
       {"parameters { pattern: 'a' l1: -1 }", "parameters[0].l1: must be finite and not"},
       {"averaged_weights { decay: 1 }", "averaged_weights.decay: must be in [0, 1)"},
       {"adamw { weight_decay: -1 }", "adamw.weight_decay: must be finite and not"}});
}

}  // namespace
}  // namespace satrap
