#include "common/flags/flags.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Options {
  std::string topic;
  std::string cause = "none";
  std::string format = "lines";
  std::vector<std::string> sets;
  std::vector<int> ks = {20, 50};
  int64_t rows = 7;
  absl::optional<uint64_t> seed;
  double rate = 1;
  bool json = false;

  std::vector<Flag> Table() {
    return {
        TextFlag("topic", "T", "the topic", &topic),
        MayBeEmpty(TextFlag("cause", "TEXT", "why", &cause)),
        ChoiceFlag("format", "lines|record", "what a message holds", &format),
        TextsFlag("set", "PATH=VALUE", "a field", &sets),
        NumbersFlag("k", "N,N,...", "lengths", &ks, 1, 10000),
        NumberFlag("rows", "N", "how many", &rows, 1, 1 << 20),
        NumberFlag("seed", "S", "draws", &seed, 0),
        NumberFlag("rate", "N", "records a second", &rate, kAboveZero),
        SwitchFlag("json", "print JSON", &json),
    };
  }
};

std::string ErrorOf(const std::vector<std::string>& args) {
  Options options;
  return std::string(ParseFlags(args, options.Table()).status().message());
}

TEST(ParseFlags, TakesBothSpellingsAnywhereAmongTheArguments) {
  Options options;
  const auto others = ParseFlags({"a", "--topic", "clicks", "--rows=12", "b", "--rate", "2.5",
                                  "--format=RECORD", "--k=5,1", "--seed", "18446744073709551615"},
                                 options.Table());
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, ElementsAre("a", "b"));
  EXPECT_EQ(options.topic, "clicks");
  EXPECT_EQ(options.rows, 12);
  EXPECT_EQ(options.rate, 2.5);
  EXPECT_EQ(options.format, "record") << "as the table writes it";
  EXPECT_THAT(options.ks, ElementsAre(5, 1));
  EXPECT_EQ(options.seed, uint64_t{18446744073709551615u});
}

TEST(ParseFlags, WhatIsNotGivenKeepsItsDefault) {
  Options options;
  const auto others = ParseFlags({}, options.Table());
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(*others, IsEmpty());
  EXPECT_EQ(options.rows, 7);
  EXPECT_FALSE(options.seed.has_value());
  EXPECT_THAT(options.ks, ElementsAre(20, 50));
}

TEST(ParseFlags, ASwitchTakesNothingOfTheNextWord) {
  Options options;
  const auto others = ParseFlags({"--json", "5"}, options.Table());
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_TRUE(options.json);
  EXPECT_THAT(*others, ElementsAre("5"));
  EXPECT_EQ(ErrorOf({"--json=5"}), "--json takes no value");
}

TEST(ParseFlags, OnlySomeFlagsMayBeGivenAgain) {
  Options options;
  ASSERT_TRUE(ParseFlags({"--set", "a=1", "--set=b=2"}, options.Table()).ok());
  EXPECT_THAT(options.sets, ElementsAre("a=1", "b=2"));
  EXPECT_EQ(ErrorOf({"--rows=1", "--rows=1"}), "--rows is given twice");
  EXPECT_EQ(ErrorOf({"--json", "--json"}), "--json is given twice");
}

TEST(ParseFlags, NamesAFlagWithoutAValue) {
  EXPECT_EQ(ErrorOf({"--topic"}), "--topic needs a value: --topic T");
  EXPECT_EQ(ErrorOf({"--topic="}), "--topic needs a value: --topic T");
  EXPECT_EQ(ErrorOf({"--topic", ""}), "--topic needs a value: --topic T");
  EXPECT_EQ(ErrorOf({"--topic", "--json"}), "--topic needs a value: --topic T")
      << "the next flag is not its value";
  EXPECT_EQ(ErrorOf({"--topic=--json"}), "");
  EXPECT_EQ(ErrorOf({"--cause"}), "--cause needs a value: --cause TEXT");
  Options options;
  ASSERT_TRUE(ParseFlags({"--cause="}, options.Table()).ok());
  EXPECT_EQ(options.cause, "");
}

TEST(ParseFlags, NamesAValueOutOfRangeAndWhatIsExpected) {
  EXPECT_EQ(ErrorOf({"--rows=0"}), "--rows 0 is not a whole number in [1, 1048576]");
  EXPECT_EQ(ErrorOf({"--rows", "1048577"}), "--rows 1048577 is not a whole number in [1, 1048576]");
  EXPECT_EQ(ErrorOf({"--rows=2.5"}), "--rows 2.5 is not a whole number in [1, 1048576]");
  EXPECT_EQ(ErrorOf({"--rows=many"}), "--rows many is not a whole number in [1, 1048576]");
  EXPECT_EQ(ErrorOf({"--seed=-1"}), "--seed -1 is not a whole number >= 0");
  EXPECT_EQ(ErrorOf({"--rate=0"}), "--rate 0 is not a number > 0");
  EXPECT_EQ(ErrorOf({"--rate=nan"}), "--rate nan is not a number > 0");
  EXPECT_EQ(ErrorOf({"--format=csv"}), "--format csv is not one of lines, record");
  EXPECT_EQ(ErrorOf({"--k=5,"}), "--k 5,: '' is not a whole number in [1, 10000]");
}

TEST(ParseFlags, AWholeNumberMayHaveAnExponent) {
  Options options;
  ASSERT_TRUE(ParseFlags({"--rows=1e6"}, options.Table()).ok());
  EXPECT_EQ(options.rows, 1000000);
  EXPECT_EQ(ErrorOf({"--rows=1e-1"}), "--rows 1e-1 is not a whole number in [1, 1048576]");
  EXPECT_EQ(ErrorOf({"--seed=1e30"}), "--seed 1e30 is not a whole number >= 0");
}

TEST(ParseFlags, NamesAnUnknownFlagAndTheOneThatWasMeant) {
  EXPECT_EQ(ErrorOf({"--topik=x"}), "unknown flag --topik; did you mean --topic?");
  EXPECT_EQ(ErrorOf({"--frobnicate"}),
            "unknown flag --frobnicate; the flags are --topic, --cause, --format, --set, --k, "
            "--rows, --seed, --rate, --json");
  EXPECT_EQ(ParseFlags({"--topic"}, {}).status().message(),
            "unknown flag --topic; no flag is taken");
}

TEST(ParseFlags, NamesARequiredFlagThatIsMissing) {
  std::string topic;
  const std::vector<Flag> flags = {Required(TextFlag("topic", "T", "the topic", &topic))};
  EXPECT_EQ(ParseFlags({"a"}, flags).status().message(), "--topic is missing; give --topic T");
  EXPECT_TRUE(ParseFlags({"--topic=a"}, flags).ok());
}

TEST(ParseOnlyFlags, NamesAnArgumentThatIsNoFlag) {
  bool json = false;
  const std::vector<Flag> flags = {SwitchFlag("json", "print JSON", &json)};
  EXPECT_TRUE(ParseOnlyFlags({"--json"}, flags).ok());
  EXPECT_EQ(ParseOnlyFlags({"json"}, flags).message(),
            "'json' is not a flag; the flags are --json");
}

TEST(FlagsHelp, IsATableWhoseLinesBreakBetweenWords) {
  std::string text;
  bool json = false;
  const std::vector<Flag> flags = {
      TextFlag("set", "path=value", R"(override a field of the job, once for each field that is to
                                       have another value than in the file: --set seed=7)",
               &text),
      SwitchFlag("json", "print JSON", &json),
      TextFlag("a_name_beyond_the_column", "FILE", "a file", &text),
      TextFlag("for_a_script", "TEXT", "", &text),
  };
  EXPECT_EQ(FlagsHelp(flags),
            "  --set path=value  override a field of the job, once for each field that is to have "
            "another value\n"
            "                    than in the file: --set seed=7\n"
            "  --json            print JSON\n"
            "  --a_name_beyond_the_column FILE\n"
            "                    a file\n");
}

TEST(AsksForHelp, WhereverItStands) {
  EXPECT_TRUE(AsksForHelp({"a", "--rows", "--help"}));
  EXPECT_TRUE(AsksForHelp({"-h"}));
  EXPECT_FALSE(AsksForHelp({"help"}));
}

TEST(TakeProgramFlags, EndsTheProgramAfterHelpAndAfterAnError) {
  bool json = false;
  const std::vector<Flag> flags = {SwitchFlag("json", "print JSON", &json)};
  const auto take = [](const std::vector<Flag>& flags, std::vector<std::string> args,
                       size_t in_order = 0) {
    args.insert(args.begin(), "/bin/a_benchmark");
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    return TakeProgramFlags(static_cast<int>(argv.size()), argv.data(), "usage: a_benchmark", flags,
                            in_order);
  };
  EXPECT_EQ(take(flags, {"--json"}), absl::nullopt);
  EXPECT_TRUE(json);
  testing::internal::CaptureStdout();
  EXPECT_EQ(take(flags, {"--help"}), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "usage: a_benchmark\n\n  --json    print JSON\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(take(flags, {"--jsn"}), kExitWrongCommandLine);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: a_benchmark: unknown flag --jsn; did you mean --json?\n");

  int rows = 0;
  const std::vector<Flag> in_order = {NumberFlag("rows", "N", "how many", &rows, 1)};
  EXPECT_EQ(take(in_order, {"7"}, 1), absl::nullopt);
  EXPECT_EQ(rows, 7);
  testing::internal::CaptureStderr();
  EXPECT_EQ(take(in_order, {"0"}, 1), kExitWrongCommandLine);
  EXPECT_EQ(take(in_order, {"7", "8"}, 1), kExitWrongCommandLine);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "error: a_benchmark: --rows 0 is not a whole number >= 1\n"
            "error: a_benchmark: '8' is not a flag; the flags are --rows\n");
}

}  // namespace
}  // namespace satrap
