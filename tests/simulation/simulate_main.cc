// Runs the worlds of the seeds FIRST to LAST and prints every promise that was broken.
//
//   bazel run //tests/simulation:simulate -- [--deaths] FIRST [LAST]
//   bazel run //tests/simulation:simulate -- --faults [TEXT]
//
// With --deaths processes die, the power fails, writes fail, wishes come, and the run restarts. The
// second form plants every fault that can be planted (or those whose description contains TEXT) and
// prints the first seed that finds each, in the form of the table in README.md; exit code 1 if a
// fault is not found.
//
// For each broken world it prints the shape, what broke, and the command that replays it alone, and
// at the end how many worlds there were of each kind. Several worlds run in a child process, so
// that the seed of a world whose CHECK fails is printed, too. Exit code 1 if a world broke a
// promise.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/flags/flags.h"
#include "tests/simulation/sim_faults.h"
#include "tests/simulation/sim_world.h"

namespace satrap::simulation {
namespace {

void PrintBroken(const WorldShape& shape, const WorldResult& result, bool with_deaths) {
  std::printf("%s\n", Describe(shape).c_str());
  if (with_deaths) std::printf("  %s\n", DeathPlan::Draw(shape.seed).Describe().c_str());
  for (const std::string& violation : result.violations) std::printf("  %s\n", violation.c_str());
  std::printf("  replay: %s\n", ReplayCommand(shape.seed, with_deaths).c_str());
  std::fflush(stdout);
}

DeathPlan DeathsOf(uint64_t seed, bool with_deaths) {
  return with_deaths ? DeathPlan::Draw(seed) : DeathPlan();
}

// Sets `*running` to the seed of the world that runs. Returns the exit code.
int RunWorlds(uint64_t first, uint64_t last, bool with_deaths, volatile uint64_t* running) {
  unsigned long long broken = 0, steps = 0, samples = 0, events = 0;
  std::map<std::string, int> kinds;
  for (uint64_t seed = first; seed <= last; ++seed) {
    *running = seed;
    const WorldShape shape = WorldShape::Draw(seed);
    if (first == last) std::printf("%s\n", Describe(shape).c_str());
    const WorldResult result = RunWorld(shape, nullptr, {}, DeathsOf(seed, with_deaths));
    steps += result.steps;
    samples += result.trained_samples;
    events += result.events;
    for (const std::string& kind : KindsOf(shape, result)) ++kinds[kind];
    if (result.violations.empty()) continue;
    ++broken;
    PrintBroken(shape, result, with_deaths);
  }
  for (const auto& [kind, count] : kinds) std::printf("%7d %s\n", count, kind.c_str());
  std::printf("%llu worlds, %llu broken; %llu steps, %llu samples trained, %llu events\n",
              static_cast<unsigned long long>(last) - first + 1, broken, steps, samples, events);
  std::fflush(stdout);
  return broken == 0 ? 0 : 1;
}

int RunWorldsInChild(uint64_t first, uint64_t last, bool with_deaths) {
  void* shared =
      mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  auto* running = static_cast<volatile uint64_t*>(shared);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(RunWorlds(first, last, with_deaths, running));
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::printf("%s\n  ended the process by signal %d\n  replay: %s\n",
              Describe(WorldShape::Draw(*running)).c_str(), WTERMSIG(status),
              ReplayCommand(*running, with_deaths).c_str());
  if (*running < last) {
    std::printf("seeds %llu to %llu did not run\n", static_cast<unsigned long long>(*running) + 1,
                static_cast<unsigned long long>(last));
  }
  return 1;
}

// Far more seeds than any fault needs, so no fault is missed for lack of worlds.
constexpr uint64_t kSeedsPerFault = 2000;

// Prints the table of the faults whose description contains `part`.
int PrintFaultTable(absl::string_view part) {
  bool all_found = true;
  std::printf("| fault | seed |\n|---|---|\n");
  for (const Fault& fault : AllFaults()) {
    if (!absl::StrContains(fault.says, part)) continue;
    const FaultSearch search = SearchFault(fault, kSeedsPerFault);
    all_found = all_found && search.seed > 0;
    std::printf("| %s | %s |\n", fault.says,
                search.seed > 0 ? absl::StrCat(search.seed).c_str() : "not found");
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", search.finding.c_str());
  }
  return all_found ? 0 : 1;
}

}  // namespace
}  // namespace satrap::simulation

int main(int argc, char** argv) {
  bool faults = false, with_deaths = false;
  uint64_t first = 0, last = 0;
  const auto seeds = satrap::ParseFlags(
      std::vector<std::string>(argv + 1, argv + argc),
      {satrap::SwitchFlag("faults", "the seed that finds each planted fault", &faults),
       satrap::SwitchFlag("deaths", "processes die", &with_deaths)});
  if (!seeds.ok()) {
    std::fprintf(stderr, "simulate: %s\n", std::string(seeds.status().message()).c_str());
    return satrap::kExitWrongCommandLine;
  }
  if (seeds->size() > 2 || (faults ? seeds->size() > 1 : seeds->empty())) {
    std::fprintf(stderr,
                 "usage: simulate [--deaths] FIRST_SEED [LAST_SEED] | simulate --faults [TEXT]\n");
    return satrap::kExitWrongCommandLine;
  }
  if (faults) return satrap::simulation::PrintFaultTable(seeds->empty() ? "" : seeds->front());
  if (!absl::SimpleAtoi(seeds->front(), &first) || !absl::SimpleAtoi(seeds->back(), &last) ||
      last < first) {
    std::fprintf(stderr, "simulate: seeds are whole numbers, FIRST_SEED not above LAST_SEED\n");
    return satrap::kExitWrongCommandLine;
  }
  if (first != last) return satrap::simulation::RunWorldsInChild(first, last, with_deaths);
  // A single world runs in this process, because a debugger can follow that more easily.
  uint64_t running = 0;
  return satrap::simulation::RunWorlds(first, last, with_deaths, &running);
}
