#include "common/file/mount_name.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr char kMounts[] =
    "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "22 21 0:5 / /proc rw - proc proc rw\n"
    "30 21 0:40 / /mnt/runs rw shared:5 master:6 - nfs4 server:/runs rw,vers=4.2\n"
    "31 21 0:41 / /mnt/with\\040blank rw - fuse.s3fs s3fs rw\n"
    "32 30 0:42 / /mnt/runs/hidden rw - tmpfs tmpfs rw\n"
    "33 32 0:43 / /mnt/runs/hidden rw - cifs //server/share rw\n";

TEST(MountNameTest, TheDeepestMountAboveAPathCounts) {
  EXPECT_EQ(MountNameIn(kMounts, "/home"), "ext4");
  EXPECT_EQ(MountNameIn(kMounts, "/mnt/runs"), "nfs4");
  EXPECT_EQ(MountNameIn(kMounts, "/mnt/runs/demo/log"), "nfs4");
  EXPECT_EQ(MountNameIn(kMounts, "/mnt/runs2"), "ext4");
  EXPECT_EQ(MountNameIn(kMounts, "/mnt/with blank/demo"), "fuse.s3fs");
}

TEST(MountNameTest, OfTwoMountsAtOnePlaceTheLaterCounts) {
  EXPECT_EQ(MountNameIn(kMounts, "/mnt/runs/hidden/demo"), "cifs");
}

TEST(MountNameTest, WithoutMountsNothingIsKnown) {
  EXPECT_EQ(MountNameIn("", "/home"), "");
  EXPECT_EQ(MountNameIn("cut - off", "/home"), "");
}

TEST(MountNameTest, ThisMachineTellsItsOwn) {
  EXPECT_EQ(MountNameOf("/proc/self"), "proc");
  EXPECT_NE(MountNameOf(testing::TempDir() + "/what/is/not/there/yet"), "");
}

}  // namespace
}  // namespace satrap
