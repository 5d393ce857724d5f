#include "nn_worker/report/device_metrics.h"

#include "gmock/gmock.h"
#include "nn_worker/device/metered_device.h"

namespace satrap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DeviceMetricsTest, ShowWhatTheMeterSaysAndHowLongStepsTake) {
  MetricsRegistry registry("nn_worker", 1);
  const auto meter = std::make_shared<DeviceMeter>();
  DeviceMetrics metrics(&registry, meter);
  meter->Take(5000);
  meter->GiveBack(1000);
  meter->TakePinned(300);
  meter->CountCopyIn(70);
  meter->CountCopyOut(20);
  meter->CountGraphLaunch();
  metrics.Refresh();
  meter->CountCopyIn(7);
  metrics.ObserveStep(.25);
  metrics.Refresh();
  constexpr char kOf[] = "{index=\"1\",role=\"nn_worker\"} ";
  const auto line = [&](const std::string& name, const std::string& value) {
    return HasSubstr("satrap_device_" + name + kOf + value + "\n");
  };
  EXPECT_THAT(registry.Text(),
              AllOf(line("memory_bytes", "4000"), line("memory_peak_bytes", "5000"),
                    line("pinned_bytes", "300"), line("copied_in_bytes_total", "77"),
                    line("copied_out_bytes_total", "20"), line("graph_launches_total", "1"),
                    line("step_seconds_count", "1"), line("step_seconds_sum", "0.25")));
}

}  // namespace
}  // namespace satrap
