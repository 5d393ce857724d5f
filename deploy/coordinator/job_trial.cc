#include "deploy/coordinator/job_trial.h"

#include "common/checkpoint/job_of_run.h"
#include "common/config/job_change.h"

namespace satrap {

JobTrial TrialOf(const RunLog& log, const JobConfig& job) {
  JobTrial trial;
  if (job.action() != JobConfig::TRAIN || log.end() != nullptr) return trial;
  const JobConfig* before = JobToGoBackTo(log.entries(), job);
  trial.writes_running = before != nullptr || LastThatRan(log.entries()) == nullptr;
  if (before == nullptr) return trial;
  trial.change = JobChangeText(*before, job);
  // Losses since then have begun generations of the same job.
  for (auto entry = log.entries().rbegin(); entry != log.entries().rend(); ++entry) {
    if (!entry->has_generation() || entry->generation().began() == BEGAN_RESTART) continue;
    trial.resumed = entry->generation().began() == BEGAN_RESUME;
    break;
  }
  return trial;
}

}  // namespace satrap
