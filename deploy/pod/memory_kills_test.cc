#include "deploy/pod/memory_kills.h"

#include <filesystem>
#include <fstream>

#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class MemoryKillsTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // `root` is the mount's root in the hierarchy of cgroups, `path` the path of the process's
  // cgroup.
  void MountV1(const std::string& root, const std::string& path) const {
    Write("proc/mountinfo",
          "22 1 0:20 / /proc rw - proc proc rw\n"
          "30 25 0:26 " +
              root + " " + root_ +
              "/cpu ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
              "31 25 0:27 " +
              root + " " + root_ + "/memory ro,nosuid shared:9 - cgroup cgroup rw,memory\n");
    Write("proc/cgroup", "9:cpu,cpuacct:/elsewhere\n5:memory:" + path + "\n0::/\n");
  }
  void MountV2(const std::string& root, const std::string& path) const {
    Write("proc/mountinfo", "31 25 0:27 " + root + " " + root_ +
                                "/unified ro,nosuid - cgroup2 cgroup rw,nsdelegate\n");
    Write("proc/cgroup", "0::" + path + "\n");
  }
  MemoryKills Kills() const { return MemoryKills(root_ + "/proc"); }

  const TempDir temp_;
  const std::string root_ = temp_.path();
};

TEST_F(MemoryKillsTest, V1CountsInTheContainersOwnCgroup) {
  // A container sees only its own cgroup, but its path is the one on the machine.
  MountV1("/pods/pod7/c1", "/pods/pod7/c1");
  Write("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  Write("memory/memory.limit_in_bytes", "268435456\n");
  EXPECT_EQ(Kills().Count(), 3);
  EXPECT_EQ(Kills().LimitBytes(), 268435456);
}

TEST_F(MemoryKillsTest, V1OnTheMachineItselfIsFoundByItsPath) {
  MountV1("/", "/pods/pod7");
  Write("memory/memory.oom_control", "oom_kill 9\n");
  Write("memory/pods/pod7/memory.oom_control", "oom_kill 2\n");
  Write("memory/pods/pod7/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Kills().Count(), 2);
  EXPECT_FALSE(Kills().LimitBytes().has_value()) << "the largest number means none";
}

TEST_F(MemoryKillsTest, V2CountsInTheEvents) {
  // In a cgroup namespace, the mount's root and the process's path are both shown as "/".
  MountV2("/", "/");
  Write("unified/memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n");
  Write("unified/memory.max", "max\n");
  EXPECT_EQ(Kills().Count(), 1);
  EXPECT_FALSE(Kills().LimitBytes().has_value());
  Write("unified/memory.max", "1048576\n");
  EXPECT_EQ(Kills().LimitBytes(), 1048576);
}

TEST_F(MemoryKillsTest, ACgroupBelowTheMountIsFoundRelativeToIt) {
  MountV2("/pods", "/pods/pod7");
  Write("unified/memory.events", "oom_kill 8\n");
  Write("unified/pod7/memory.events", "oom_kill 4\n");
  EXPECT_EQ(Kills().Count(), 4);
}

TEST_F(MemoryKillsTest, AMachineWithoutCountersHasCountedNothing) {
  EXPECT_EQ(Kills().Count(), 0);
  EXPECT_FALSE(Kills().LimitBytes().has_value());
  Write("proc/mountinfo", "a line - of another form\n31 25 0:27\n");
  Write("proc/cgroup", "nothing\n");
  EXPECT_EQ(Kills().Count(), 0);
}

}  // namespace
}  // namespace satrap
