#include "deploy/cli/bench/throughput_meter.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace satrap {
namespace {

StatusAnswer AfterStep(uint64_t step, double rate, double loss) {
  StatusAnswer status;
  TrainProgress* train = status.mutable_train();
  train->set_step(step);
  train->set_samples(step * 100);
  train->set_samples_per_second(rate);
  train->set_window_loss(loss);
  return status;
}

TEST(ThroughputMeter, MeasuresAfterTheWarmUpOnly) {
  ThroughputMeter meter(/*warmup_seconds=*/2, /*seconds=*/3);
  EXPECT_TRUE(meter.Add(StatusAnswer(), 0));
  EXPECT_TRUE(meter.Add(AfterStep(1, 1, 0.9), 10));
  EXPECT_TRUE(meter.Add(AfterStep(2, 2, 0.8), 11));
  EXPECT_EQ(meter.num_windows(), 0u);
  EXPECT_TRUE(meter.Add(AfterStep(3, 3, 0.7), 12)) << "here the measurement begins";
  EXPECT_TRUE(meter.Add(AfterStep(4, 100, 0.6), 13));
  EXPECT_TRUE(meter.Add(AfterStep(4, 100, 0.6), 13.5)) << "nothing new";
  EXPECT_TRUE(meter.Add(AfterStep(5, 300, 0.5), 14));
  EXPECT_FALSE(meter.Add(AfterStep(6, 110, 0.4), 15));
  EXPECT_EQ(meter.num_windows(), 3u);
  EXPECT_EQ(meter.MedianRate(), 110);
  EXPECT_EQ(meter.samples(), 300u);
  EXPECT_EQ(meter.MeanRate(), 100);
  EXPECT_EQ(meter.first_loss(), 0.9);
  EXPECT_EQ(meter.last_loss(), 0.4);
}

TEST(ThroughputMeter, TakesItsOwnRateWhereTheRankReportsNone) {
  ThroughputMeter meter(0, 100);
  EXPECT_TRUE(meter.Add(AfterStep(1, 0, 0), 1));
  EXPECT_TRUE(meter.Add(AfterStep(5, 0, 0), 3));
  EXPECT_EQ(meter.MedianRate(), 200);
}

TEST(ThroughputMeter, CountsTheProcessorTimeOfRoles) {
  ThroughputMeter meter(0, 100);
  StatusAnswer before = AfterStep(1, 1, 1);
  before.add_roles()->mutable_member()->set_pid(getpid());
  before.mutable_roles(0)->mutable_member()->set_role(NN_WORKER);
  StatusAnswer after = AfterStep(2, 1, 1);
  *after.mutable_roles() = before.roles();
  EXPECT_TRUE(meter.Add(before, 0));
  volatile double sum = 0;
  for (int i = 0; i < 100000000; ++i) sum = sum + i;
  EXPECT_TRUE(meter.Add(after, 1));
  EXPECT_GT(meter.CpuPerSampleUs().at("nn_worker"), 0);
}

}  // namespace
}  // namespace satrap
