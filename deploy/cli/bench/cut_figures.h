// Computes how much cuts slow a training down, from the lines of its metrics.jsonl
// (docs/formats.md).
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_CLI_BENCH_CUT_FIGURES_H_
#define SATRAP_DEPLOY_CLI_BENCH_CUT_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace satrap {

struct CutFigures {
  double seconds = 0;  // seconds of training that were measured
  double samples_per_second = 0;
  // One element for each cut that paused the measured part of the training.
  struct Pause {
    double seconds = 0;        // time between the counted steps around it, less a usual step
    double usual_seconds = 0;  // the usual time of a step
  };
  std::vector<Pause> pauses;
  // One value for each cut that was committed within the measured part of the training.
  std::vector<double> writing_seconds;
  std::vector<double> copied_bytes;
  int abandoned = 0;
};

// The figures of the `seconds` of training that follow the first `warmup_seconds`, or of fewer
// seconds if the training is shorter.
CutFigures ReadCutFigures(const std::string& metrics, double warmup_seconds, double seconds);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_BENCH_CUT_FIGURES_H_
