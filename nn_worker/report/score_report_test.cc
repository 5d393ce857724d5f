#include "nn_worker/report/score_report.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ScoreReportTest : public testing::Test {
 protected:
  MetricsRegistry registry_{"nn_worker", 0};
  std::vector<std::string> lines_;
  ScoreReport report_{&registry_, 3, [this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ScoreReportTest, AWindowOfSamplesIsALineAndGauges) {
  ScoreWindow window;
  window.begin = 1000;
  window.end = 2100;
  window.steps = 21;
  window.samples = 550;
  window.auc = .75;
  window.logloss = .5;
  window.calibration = 1.25;
  report_.Report(window);
  EXPECT_EQ(lines_, std::vector<std::string>{
                        "{\"event\":\"window\",\"generation\":3,\"by\":\"samples\",\"step\":21,"
                        "\"first_sample\":1000,\"last_sample\":2099,\"samples\":550,\"auc\":0.75,"
                        "\"logloss\":0.5,\"calibration\":1.25}"});
  const std::string text = registry_.Text();
  EXPECT_THAT(text,
              HasSubstr("satrap_window_auc{index=\"0\",role=\"nn_worker\",by=\"samples\"} 0.75\n"));
  EXPECT_THAT(text, HasSubstr("} 550\n"));
  EXPECT_THAT(text, Not(HasSubstr("data_time"))) << "no window of it has ended";
}

TEST_F(ScoreReportTest, AWindowOfDataTimeNamesItsBounds) {
  ScoreWindow window;
  window.by_data_time = true;
  window.begin = -3600000;
  window.end = 0;
  window.auc = window.calibration = std::nan("");
  report_.Report(window);
  EXPECT_EQ(lines_, std::vector<std::string>{
                        "{\"event\":\"window\",\"generation\":3,\"by\":\"data_time\",\"step\":0,"
                        "\"begin_ms\":-3600000,\"end_ms\":0,\"samples\":0,\"auc\":null,"
                        "\"logloss\":0,\"calibration\":null}"});
}

}  // namespace
}  // namespace satrap
