// Benchmarks of whole runs that take cuts: how soon a run trains again after a process has died,
// and what cuts cost. Each takes its flags from the call (command_flags.h), prints one JSON line
// and returns the exit code.
//
// REQUIRES: the main thread; no gRPC has been used in this process yet

#ifndef SATRAP_DEPLOY_CLI_BENCH_BENCH_RUNS_H_
#define SATRAP_DEPLOY_CLI_BENCH_BENCH_RUNS_H_

#include "absl/status/statusor.h"
#include "deploy/cli/command_line.h"

namespace satrap {

// Kills (or, with --stop 1, stops) one process after another, each after a cut, and measures the
// time to the first step of the next generation.
absl::StatusOr<int> BenchRecovery(const CommandCall& call);

// Trains without cuts and with them, in turn.
absl::StatusOr<int> BenchCuts(const CommandCall& call);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_BENCH_RUNS_H_
