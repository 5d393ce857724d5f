#include "common/role/role_flags.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::vector<std::string>& args) {
  const auto flags = ParseRoleFlags(args);
  return flags.ok() ? "" : std::string(flags.status().message());
}

std::string CoordinatorErrorOf(const std::vector<std::string>& args) {
  const auto flags = ParseCoordinatorFlags(args);
  return flags.ok() ? "" : std::string(flags.status().message());
}

TEST(ParseRoleFlags, TakesBothSpellings) {
  const auto flags = ParseRoleFlags({"--role_index", "3", "--coordinator=unix:/c", "--listen",
                                     "unix:/p", "--advertise=host:1", "--ending=/r/e"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->role_index, 3);
  EXPECT_EQ(flags->coordinator, "unix:/c");
  EXPECT_EQ(flags->listen, "unix:/p");
  EXPECT_EQ(flags->advertise, "host:1");
  EXPECT_EQ(flags->ending, "/r/e");
}

TEST(ParseRoleFlags, MetricsAreServedWhereTheyAreTold) {
  EXPECT_EQ(ParseRoleFlags({"--coordinator=a"})->metrics, "");
  EXPECT_EQ(ParseRoleFlags({"--coordinator=a", "--metrics=10.0.0.7:7001"})->metrics,
            "10.0.0.7:7001");
  EXPECT_EQ(ParseCoordinatorFlags({"--config=a", "--listen=b"})->metrics, "");
  EXPECT_EQ(ParseCoordinatorFlags({"--config=a", "--listen=b", "--metrics=[::1]:7"})->metrics,
            "[::1]:7");
}

TEST(ParseRoleFlags, AProcessOfAPodKnowsThePodAndItsBuild) {
  const auto role = ParseRoleFlags({"--coordinator=a", "--holder=pod-1", "--build=b0"});
  ASSERT_TRUE(role.ok()) << role.status();
  EXPECT_EQ(role->holder, "pod-1");
  EXPECT_EQ(role->build, "b0");
  const auto coordinator =
      ParseCoordinatorFlags({"--config=a", "--listen=b", "--holder=pod-2", "--build=b0"});
  ASSERT_TRUE(coordinator.ok()) << coordinator.status();
  EXPECT_EQ(coordinator->holder, "pod-2");
  EXPECT_EQ(coordinator->build, "b0");
}

TEST(ParseRoleFlags, AProcessOfAPodKnowsHowTheOneBeforeItEnded) {
  const auto role = ParseRoleFlags({"--coordinator=a", "--ended=why: MEMBER_LOST origin { pid: 7 }",
                                    "--cause=was killed by signal 9 (Killed)"});
  ASSERT_TRUE(role.ok()) << role.status();
  EXPECT_EQ(role->before.origin().pid(), 7);
  EXPECT_EQ(role->before.text(), "was killed by signal 9 (Killed)");
}

TEST(ParseRoleFlags, AdvertisesWhereItListensUnlessTold) {
  const auto flags = ParseRoleFlags({"--coordinator=a", "--listen=unix:/c"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->advertise, "unix:/c");
  EXPECT_EQ(flags->role_index, 0);
}

TEST(ParseRoleFlags, NamesTheFlagThatIsWrong) {
  EXPECT_THAT(ErrorOf({"--coordinater=b"}), HasSubstr("--coordinater"));
  EXPECT_THAT(ErrorOf({"--config=a", "--coordinator=b"}), HasSubstr("unknown flag --config"));
  EXPECT_THAT(ErrorOf({"--role_index=1"}), HasSubstr("--coordinator is missing"));
  EXPECT_THAT(ErrorOf({"--coordinator=a", "--coordinator=b"}), HasSubstr("twice"));
  EXPECT_THAT(ErrorOf({"--coordinator"}), HasSubstr("needs a value"));
  EXPECT_THAT(ErrorOf({"coordinator=a"}), HasSubstr("'coordinator=a' is not a flag"));
  EXPECT_THAT(ErrorOf({"--coordinator=b", "--role_index=-1"}),
              HasSubstr("--role_index -1 is not a whole number >= 0"));
}

TEST(ParseCoordinatorFlags, TakesAJobAndWhereToListen) {
  const auto flags = ParseCoordinatorFlags({"--config=a", "--listen", "unix:/c", "--role_index=0",
                                            "--cause=a PS was killed", "--ending=/r/e"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->config, "a");
  EXPECT_EQ(flags->listen, "unix:/c");
  EXPECT_EQ(flags->ended.text(), "a PS was killed");
  EXPECT_EQ(flags->ending, "/r/e");
  EXPECT_FALSE(flags->next_job);
}

TEST(ParseCoordinatorFlags, TakesHowTheGenerationBeforeEnded) {
  const auto flags =
      ParseCoordinatorFlags({"--config=a", "--listen=b", "--cause=a PS was killed",
                             "--ended=why: MEMBER_LOST origin { role: EMBEDDING_PS index: 1 }"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_EQ(flags->ended.why(), Ending::MEMBER_LOST);
  EXPECT_EQ(flags->ended.origin().index(), 1u);
  EXPECT_EQ(flags->ended.text(), "a PS was killed");
  EXPECT_THAT(CoordinatorErrorOf({"--config=a", "--listen=b", "--ended=whi: 1"}),
              HasSubstr("--ended whi: 1: --ended:1:"));
}

TEST(ParseCoordinatorFlags, TakesTheNextJobAndTheCutItBeginsFrom) {
  const auto flags =
      ParseCoordinatorFlags({"--next_job", "--config=a", "--listen=b", "--from=cut_0001_000002"});
  ASSERT_TRUE(flags.ok()) << flags.status();
  EXPECT_TRUE(flags->next_job);
  EXPECT_EQ(flags->from, "cut_0001_000002");
}

TEST(ParseCoordinatorFlags, NamesTheFlagThatIsWrong) {
  EXPECT_THAT(CoordinatorErrorOf({"--listen=a"}), HasSubstr("--config is missing"));
  EXPECT_THAT(CoordinatorErrorOf({"--config=a"}), HasSubstr("--listen is missing"));
  EXPECT_THAT(CoordinatorErrorOf({"--config=a", "--listen=b", "--from=c"}),
              HasSubstr("--from needs --next_job"));
  EXPECT_THAT(CoordinatorErrorOf({"--config=a", "--listen=b", "--coordinator=0"}),
              HasSubstr("unknown flag --coordinator"));
}

}  // namespace
}  // namespace satrap
