// Runs worlds by their seeds and prints what was not as promised.
//
//   bazel run //tests/simulation:simulate -- FIRST [LAST]
//
// Exit code 1 if a world broke a promise.

#include <cstdio>
#include <cstdlib>

#include "tests/simulation/sim_world.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: simulate FIRST_SEED [LAST_SEED]\n");
    return 1;
  }
  using namespace satrap::simulation;  // NOLINT: a main of one page
  const uint64_t first = std::strtoull(argv[1], nullptr, 10);
  const uint64_t last = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : first;
  uint64_t broken = 0, steps = 0, samples = 0, events = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const WorldShape shape = WorldShape::Draw(seed);
    const WorldResult result = RunWorld(shape);
    steps += result.steps;
    samples += result.trained_samples;
    events += result.events;
    if (first == last) std::printf("%s\n", Describe(shape).c_str());
    if (result.violations.empty()) continue;
    ++broken;
    if (first != last) std::printf("%s\n", Describe(shape).c_str());
    for (const std::string& violation : result.violations) std::printf("  %s\n", violation.c_str());
  }
  std::printf("%llu worlds, %llu broken; %llu steps, %llu samples trained, %llu events\n",
              static_cast<unsigned long long>(last - first + 1),
              static_cast<unsigned long long>(broken), static_cast<unsigned long long>(steps),
              static_cast<unsigned long long>(samples), static_cast<unsigned long long>(events));
  return broken == 0 ? 0 : 1;
}
