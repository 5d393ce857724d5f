// Tests whole runs whose NN workers train on the host's device: they score as on the CPU, and they
// continue from cuts that either device has saved.

#include <cctype>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The number after `text`, with commas between thousands; 0 if there is none.
int64_t NumberBehind(const std::string& message, const std::string& text) {
  const size_t found = message.find(text);
  if (found == std::string::npos) return 0;
  std::string digits;
  for (size_t i = found + text.size(); i < message.size(); ++i) {
    if (message[i] == ',') continue;
    if (std::isdigit(static_cast<unsigned char>(message[i])) == 0) break;
    digits += message[i];
  }
  int64_t number = 0;
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

class HostDeviceTest : public RunFixture {
 protected:
  // Trains a run in the folder `run` and returns its test AUC, which is the same on every device
  // except for rounding.
  double TestAuc(const std::string& job, const std::string& run, const std::string& device,
                 int ranks) {
    const CommandEnd end =
        Satrap({"train", job, "--set", "mode=SYNC", "--set", "reproducible=true", "--set",
                "nn_worker.device=" + device, "--set", absl::StrCat("nn_worker.replicas=", ranks),
                "--run_dir", Path(run), "--report", Path(run + ".json")});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return JsonNumber(ReadFile(Path(run + ".json")), "test.auc");
  }
};

TEST_F(HostDeviceTest, OneAndTwoRanksReachTheCpusAuc) {
  const std::string job = WriteJob(20000);
  const double cpu = TestAuc(job, "cpu", "CPU", 1);
  EXPECT_GT(cpu, 0.65) << "something is learned";
  EXPECT_NEAR(TestAuc(job, "one", "HOST", 1), cpu, 0.002);
  EXPECT_NEAR(TestAuc(job, "two", "HOST", 2), cpu, 0.002);
  EXPECT_THAT(ReadFile(Path("one/logs/nn_worker_0.log")), HasSubstr("trains on a device"));
  // The model can be scored on either device.
  for (const std::string device : {"CPU", "HOST"}) {
    const std::string report = Path(device + ".json");
    const CommandEnd evaluated =
        Satrap({"evaluate", Path("one"), "--set", "nn_worker.device=" + device, "--run_dir",
                Path("scored_" + device), "--report", report});
    ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
    EXPECT_NEAR(JsonNumber(ReadFile(report), "test.auc"),
                JsonNumber(ReadFile(Path("one.json")), "test.auc"), 1e-4);
  }
  // Scoring takes less memory than training.
  const auto taken = [this](const std::string& run) {
    return NumberBehind(ReadFile(Path(run + "/logs/nn_worker_0.log")), "memory=\"");
  };
  EXPECT_GT(taken("scored_HOST"), 0);
  EXPECT_LT(taken("scored_HOST"), taken("one"));
}

TEST_F(HostDeviceTest, ACutOfEitherDeviceIsGoneOnFromOnTheOther) {
  const std::string job = WriteJob(20000);
  for (const auto& [first, then] : {std::pair<std::string, std::string>{"HOST", "CPU"},
                                    std::pair<std::string, std::string>{"CPU", "HOST"}}) {
    const std::string run = Path("from_" + first);
    const Command command = StartSatrap({"train", job, "--set", "nn_worker.device=" + first,
                                         "--set", "epochs=100000", "--run_dir", run});
    ASSERT_TRUE(WaitUntilTraining(run));
    EXPECT_EQ(Satrap({"stop", run}).exit_code, 0);
    EXPECT_EQ(WaitFor(command, 30).exit_code, 0);
    const int64_t step = NumberBehind(Satrap({"status", run}).out, "continues from step ");
    ASSERT_GT(step, 0);
    const CommandEnd small = Satrap({"resume", run, "--set", "nn_worker.device=HOST", "--set",
                                     "nn_worker.device_memory_bytes=1"});
    EXPECT_EQ(small.exit_code, 1);
    EXPECT_THAT(small.err,
                HasSubstr("nn_worker.device_memory_bytes is 1, but each NN worker needs "));
    const std::string report = run + ".json";
    const CommandEnd resumed = Satrap({"resume", run, "--set", "nn_worker.device=" + then, "--set",
                                       absl::StrCat("max_steps=", step + 100), "--report", report});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(JsonNumber(ReadFile(report), "generations"), 2);
    // In hybrid mode a rank also trains the parts that it already holds, so there may be more
    // steps.
    EXPECT_GE(JsonNumber(ReadFile(report), "steps"), static_cast<double>(step + 100));
    EXPECT_GT(JsonNumber(ReadFile(report), "test.auc"), 0.6);
  }
}

TEST_F(HostDeviceTest, WhatTheDeviceMustHoldIsKnownBefore) {
  const std::string job = WriteJob(2000);
  const CommandEnd valid = Satrap({"validate", job, "--set", "nn_worker.device=HOST"});
  ASSERT_EQ(valid.exit_code, 0) << valid.err;
  const int64_t need = NumberBehind(valid.err, "each NN worker needs ");
  EXPECT_GT(need, 100000) << valid.err;
  EXPECT_THAT(valid.err, HasSubstr("bytes of device memory (network "));
  EXPECT_THAT(Satrap({"validate", job}).err, Not(HasSubstr("device memory")));

  const CommandEnd refused =
      Satrap({"train", job, "--set", "nn_worker.device=HOST", "--set",
              absl::StrCat("nn_worker.device_memory_bytes=", need - 1), "--run_dir", Path("run")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(absl::StrCat("nn_worker.device_memory_bytes is ", need - 1,
                                                  ", but each NN worker needs ", need, " bytes")));
  EXPECT_FALSE(fs::exists(Path("run"))) << "nothing was started";

  // A device with the memory that `validate` reports is large enough.
  const CommandEnd enough =
      Satrap({"train", job, "--set", "nn_worker.device=HOST", "--set",
              absl::StrCat("nn_worker.device_memory_bytes=", need), "--run_dir", Path("run")});
  EXPECT_EQ(enough.exit_code, 0) << enough.err;
}

// The run ends for good because another generation would find the same device.
TEST_F(HostDeviceTest, ADeviceThatIsTooSmallAsAWholeEndsTheRunForGood) {
  const CommandEnd end =
      Satrap({"train", WriteJob(2000), "--set", "nn_worker.device=HOST", "--set",
              "nn_worker.replicas=1", "--set", "global_batch_size=1000000", "--set",
              "model.layers[2].mlp.units=16384", "--run_dir", Path("run")});
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_THAT(end.err,
              AllOf(HasSubstr("the host's device has 68719476736 bytes of memory in all, "
                              "but each NN worker needs "),
                    HasSubstr(": use a device with more memory, a smaller global_batch_size"),
                    Not(HasSubstr("restart"))));
}

}  // namespace
}  // namespace satrap
