#include "deploy/pod/pod_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;

PodFlags Flags() {
  PodFlags flags;
  flags.config = "/etc/job";
  flags.role_index = 3;
  flags.ip = "10.0.0.7";
  flags.port = 7000;
  flags.coordinator = "demo:7000";
  return flags;
}

std::vector<std::string> CommandOf(Role role, const PodFlags& flags = Flags(),
                                   const JobConfig& job = JobConfig()) {
  return RoleCommand(flags, role, job, "/opt", "b0", "/scratch/e");
}

TEST(PodFlagsTest, EachRoleGetsWhatItTakes) {
  EXPECT_THAT(CommandOf(COORDINATOR),
              ElementsAre("/opt/deploy/coordinator/coordinator", "--ending=/scratch/e",
                          "--listen=[::]:7000", "--config=/etc/job", "--submission=1"));
  PodFlags resumed = Flags();
  resumed.submission = 3;
  resumed.from = "best";
  EXPECT_THAT(
      CommandOf(COORDINATOR, resumed),
      ElementsAre("/opt/deploy/coordinator/coordinator", "--ending=/scratch/e",
                  "--listen=[::]:7000", "--config=/etc/job", "--submission=3", "--from=best"));
  EXPECT_THAT(
      CommandOf(EMBEDDING_PS),
      ElementsAre("/opt/embedding_ps/embedding_ps", "--ending=/scratch/e", "--listen=[::]:7000",
                  "--role_index=3", "--coordinator=demo:7000", "--advertise=10.0.0.7:7000"));
  EXPECT_THAT(CommandOf(DATA_LOADER),
              ElementsAre("/opt/data_loader/data_loader", "--ending=/scratch/e", "--role_index=3",
                          "--coordinator=demo:7000"));
  EXPECT_THAT(CommandOf(NN_WORKER),
              ElementsAre("/opt/nn_worker/nn_worker", "--ending=/scratch/e", "--role_index=3",
                          "--coordinator=demo:7000", "--advertise=10.0.0.7"));
}

TEST(PodFlagsTest, EachRoleIsToldOfItsPodAndBuild) {
  PodFlags flags = Flags();
  flags.holder = "0123-uid";
  for (const Role role : {COORDINATOR, EMBEDDING_PS, EMBEDDING_WORKER, DATA_LOADER, NN_WORKER}) {
    EXPECT_THAT(CommandOf(role, flags),
                ::testing::IsSupersetOf({"--holder=0123-uid", "--build=b0"}));
  }
}

TEST(PodFlagsTest, MetricsAreServedAtTheAddressOfThePod) {
  PodFlags flags = Flags();
  flags.metrics_port = 7001;
  for (const Role role : {COORDINATOR, EMBEDDING_PS, DATA_LOADER, NN_WORKER}) {
    EXPECT_THAT(CommandOf(role, flags), ::testing::Contains("--metrics=10.0.0.7:7001"));
  }
  flags.ip = "fd00::7";
  EXPECT_THAT(CommandOf(DATA_LOADER, flags), ::testing::Contains("--metrics=[fd00::7]:7001"));
  flags.ip.clear();
  EXPECT_EQ(CheckPodFlags(flags, COORDINATOR).message(), "coordinator needs --ip");
  EXPECT_EQ(CheckPodFlags(flags, DATA_LOADER).message(), "data_loader needs --ip");
}

TEST(PodFlagsTest, AnAddressOfIpv6HasBrackets) {
  PodFlags flags = Flags();
  flags.ip = "fd00::7";
  EXPECT_EQ(CommandOf(EMBEDDING_WORKER, flags).back(), "--advertise=[fd00::7]:7000");
  EXPECT_EQ(AddressOf("[fd00::7]", 1), "[fd00::7]:1");
}

TEST(PodFlagsTest, TheNnWorkersProgramIsThatOfTheDevice) {
  JobConfig job;
  job.mutable_nn_worker()->set_device(NnWorkerConfig::CUDA);
  EXPECT_EQ(CommandOf(NN_WORKER, Flags(), job).front(), "/opt/nn_worker/nn_worker_cuda");
}

TEST(PodFlagsTest, WhatARoleNeedsAndLacksIsNamed) {
  EXPECT_TRUE(CheckPodFlags(Flags(), EMBEDDING_PS).ok());
  PodFlags flags;
  EXPECT_EQ(CheckPodFlags(flags, COORDINATOR).message(), "coordinator needs --port");
  EXPECT_EQ(CheckPodFlags(flags, EMBEDDING_PS).message(),
            "embedding_ps needs --port and --coordinator and --ip");
  EXPECT_EQ(CheckPodFlags(flags, DATA_LOADER).message(), "data_loader needs --coordinator");
  EXPECT_EQ(CheckPodFlags(flags, NN_WORKER).message(), "nn_worker needs --coordinator and --ip");
}

TEST(PodFlagsTest, AScratchFolderThatCannotBeWrittenIsNamed) {
  EXPECT_TRUE(CheckScratch(::testing::TempDir()).ok());
  const absl::Status status = CheckScratch("/nonexistent/scratch");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              ::testing::StartsWith("--scratch /nonexistent/scratch cannot be used: "));
}

TEST(PodFlagsTest, ARoleIsFoundByItsName) {
  EXPECT_EQ(RoleNamed("data_loader").value(), DATA_LOADER);
  EXPECT_EQ(RoleNamed("coordinator").value(), COORDINATOR);
  EXPECT_EQ(RoleNamed("ps").status().message(),
            "there is no role 'ps'; the roles are coordinator, embedding_ps, embedding_worker, "
            "data_loader, nn_worker");
}

}  // namespace
}  // namespace satrap
