#include "common/role/role_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(Role role, const std::vector<std::string>& args) {
  const auto flags = ParseRoleFlags(role, args);
  return flags.ok() ? "" : std::string(flags.status().message());
}

TEST(ParseRoleFlags, TakesBothSpellings) {
  const auto flags = ParseRoleFlags(
      EMBEDDING_PS, {"--config=a.textproto", "--role_index", "3", "--coordinator=unix:/c",
                     "--listen", "unix:/p", "--advertise=host:1"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->config, "a.textproto");
  EXPECT_EQ(flags->role_index, 3);
  EXPECT_EQ(flags->coordinator, "unix:/c");
  EXPECT_EQ(flags->listen, "unix:/p");
  EXPECT_EQ(flags->advertise, "host:1");
}

TEST(ParseRoleFlags, AdvertisesWhereItListensUnlessTold) {
  const auto flags = ParseRoleFlags(COORDINATOR, {"--config=a", "--listen=unix:/c"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->advertise, "unix:/c");
  EXPECT_EQ(flags->role_index, 0);
}

TEST(ParseRoleFlags, NamesTheFlagThatIsWrong) {
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--config=a", "--coordinater=b"}), HasSubstr("--coordinater"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--config=a"}), HasSubstr("--coordinator is missing"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--coordinator=a"}), HasSubstr("--config is missing"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--config=a", "--config=b"}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--config"}), HasSubstr("needs a value"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"config=a"}), HasSubstr("'config=a' is not a flag"));
  EXPECT_THAT(ErrorOf(NN_WORKER, {"--config=a", "--coordinator=b", "--role_index=-1"}),
              HasSubstr("'-1' is not a number"));
}

}  // namespace
}  // namespace satrap
