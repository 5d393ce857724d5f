// Follows docs/first_run.md: runs its commands one by one in an empty folder, and compares their
// output with the output that the page shows.

#include <filesystem>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/integration/run_fixture.h"

namespace satrap {
namespace {

namespace fs = std::filesystem;

// A block of the page that begins with ```sh and, if there is one, the block ```text that follows
// it.
struct Step {
  std::string commands;
  std::vector<std::string> output;  // lines; "..." stands for any lines
};

std::vector<Step> StepsOf(const std::string& page) {
  std::vector<Step> steps;
  enum { kProse, kCommands, kOutput, kOther } in = kProse;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, "```")) {
      if (in != kProse) {
        in = kProse;
      } else if (line == "```sh") {
        in = kCommands;
        steps.emplace_back();
      } else {
        in = line == "```text" && !steps.empty() ? kOutput : kOther;
      }
    } else if (in == kCommands) {
      absl::StrAppend(&steps.back().commands, line, "\n");
    } else if (in == kOutput) {
      steps.back().output.emplace_back(line);
    }
  }
  return steps;
}

// Removes from a line what differs from machine to machine: the folder of the runs, and numbers
// such as speeds and the last digits of learned values, which become "#". Numbers from 1,000 on
// stay, because they are counts of the data, which are the same everywhere.
std::string ShapeOf(std::string line) {
  const std::pair<const char*, const char*> forgets[] = {
      {"[0-9,]+ samples/s", "# samples/s"},
      {"/[^ ]*/runs/", "runs/"},
      {"\\b([0-9]{1,3}),([0-9]{3})\\b", "$1_$2_"},
      {"\\b[0-9]*\\.?[0-9]+\\b", "#"},
      {"\\s+", " "},
  };
  for (const auto& [what, becomes] : forgets) {
    line = std::regex_replace(line, std::regex(what), becomes);
  }
  return line;
}

std::vector<std::string> ShapesOf(const std::vector<std::string>& lines) {
  std::vector<std::string> shapes;
  for (const std::string& line : lines) {
    if (!line.empty()) shapes.push_back(ShapeOf(line));
  }
  return shapes;
}

// Whether `lines` match the lines of `pattern`, in which "..." stands for any lines.
bool Matches(const std::vector<std::string>& pattern, const std::vector<std::string>& lines,
             size_t i = 0, size_t j = 0) {
  if (i == pattern.size()) return j == lines.size();
  if (pattern[i] == "...") {
    for (size_t k = j; k <= lines.size(); ++k) {
      if (Matches(pattern, lines, i + 1, k)) return true;
    }
    return false;
  }
  return j < lines.size() && pattern[i] == lines[j] && Matches(pattern, lines, i + 1, j + 1);
}

TEST(FirstRunPageTest, ShapesKeepWordsAndCountsAndForgetMeasures) {
  EXPECT_EQ(ShapeOf("test AUC     .7123, logloss .51 (6,000 samples)"),
            ShapeOf("test AUC  .7099, logloss .525 (6,000 samples)"));
  EXPECT_NE(ShapeOf("6,000 samples"), ShapeOf("5,999 samples"));
  EXPECT_NE(ShapeOf("235 steps"), ShapeOf("235 records"));
  EXPECT_TRUE(Matches({"a", "...", "c"}, {"a", "b", "b", "c"}));
  EXPECT_FALSE(Matches({"a", "c"}, {"a", "b", "c"}));
}

class FirstRunTest : public RunFixture {
 protected:
  void SetUp() override {
    RunFixture::SetUp();
    for (const char* folder : {"bin", "work"}) fs::create_directory(Path(folder));
    const std::string command = WriteFile(
        "bin/satrap",
        absl::StrCat("#!/bin/sh\nexec ", fs::absolute(ProgramPath("deploy/satrap_cli")).string(),
                     " --install_dir=", fs::current_path().string(), " \"$@\"\n"));
    fs::permissions(command, fs::perms::owner_all);
  }
  CommandEnd Run(const std::string& commands) {
    return WaitFor(StartProgram({"bash", "-ec",
                                 absl::StrCat("cd ", Path("work"), "\nPATH=", Path("bin"),
                                              ":$PATH\n", commands)}),
                   300);
  }
};

TEST_F(FirstRunTest, EveryCommandOfThePagePrintsWhatThePageSays) {
  const std::vector<Step> steps = StepsOf(ReadFile("docs/first_run.md"));
  ASSERT_GE(steps.size(), 6u);
  for (const Step& step : steps) {
    const CommandEnd end = Run(step.commands);
    ASSERT_EQ(end.exit_code, 0) << step.commands << end.err;
    if (step.output.empty()) continue;
    EXPECT_TRUE(Matches(ShapesOf(step.output), ShapesOf(absl::StrSplit(end.out, '\n'))))
        << step.commands << "\nprints\n"
        << end.out << "\nand the page says\n"
        << absl::StrJoin(step.output, "\n");
  }
}

}  // namespace
}  // namespace satrap
