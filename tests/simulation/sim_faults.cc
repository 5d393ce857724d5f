#include "tests/simulation/sim_faults.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "tests/simulation/sim_world.h"

namespace satrap::simulation {
namespace {

// The child's report to its parent, which can still be read when the child has died.
struct Progress {
  uint64_t seed;  // of the world that runs, or that found the fault
  char finding[500];
};

bool IsLookedForIn(const Fault& fault, const WorldShape& shape) {
  return fault.worlds == Fault::kAll || (fault.worlds == Fault::kSync) == shape.ordered;
}

// Returns whether the fault was found.
bool Search(const Fault& fault, uint64_t last_seed, Progress* progress) {
  for (uint64_t seed = 1; seed <= last_seed; ++seed) {
    const WorldShape shape = WorldShape::Draw(seed);
    if (!IsLookedForIn(fault, shape)) continue;
    progress->seed = seed;
    const DeathPlan deaths = fault.with_deaths ? DeathPlan::Draw(seed) : DeathPlan();
    const WorldResult result = RunWorld(shape, &fault, {}, deaths);
    if (result.violations.empty()) continue;
    std::snprintf(progress->finding, sizeof(progress->finding), "%s", result.violations[0].c_str());
    return true;
  }
  return false;
}

}  // namespace

FaultSearch SearchFault(const Fault& fault, uint64_t last_seed) {
  void* shared =
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  auto* progress = new (shared) Progress();
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    // Hides stderr: if a planted fault makes a CHECK fail, the printed stack would look like an
    // error.
    const int quiet = open("/dev/null", O_WRONLY);
    if (quiet >= 0) dup2(quiet, STDERR_FILENO);
    _exit(Search(fault, last_seed, progress) ? 0 : 1);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  FaultSearch search;
  if (WIFSIGNALED(status)) {
    search.seed = progress->seed;
    search.finding = absl::StrCat("ended by signal ", WTERMSIG(status));
  } else if (WEXITSTATUS(status) == 0) {
    search.seed = progress->seed;
    search.finding = progress->finding;
  }
  munmap(shared, sizeof(Progress));
  return search;
}

}  // namespace satrap::simulation
