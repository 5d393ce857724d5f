// Whether a generation's job is on trial (common/checkpoint/entries/job_of_run.h), and so what the
// coordinator must write into the log about the job.

#ifndef SATRAP_DEPLOY_COORDINATOR_ENDING_JOB_TRIAL_H_
#define SATRAP_DEPLOY_COORDINATOR_ENDING_JOB_TRIAL_H_

#include <string>

#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct JobTrial {
  // Whether the log must get RUNNING, because it does not show yet that this job has begun to
  // train.
  bool writes_running = false;
  // Text for people: in which fields this job differs from the earlier job. If this generation
  // cannot begin, the next one has the earlier job. Empty if there is no earlier job to go back to.
  std::string change;
  // Whether somebody resumed the run with this job, and so waits for the result. Otherwise the job
  // comes from a `satrap scale` of a run in progress, and that run continues.
  bool resumed = false;
  // Whether this job reads other topics than the earlier job, or has other settings for reading
  // them, such as the brokers.
  bool changes_topics = false;

  // Whether the change of the job may be the reason why the generation, which ends with `how`,
  // cannot begin, so that a restart would not help. If a broker does not answer, the earlier job
  // could not begin either, unless it uses another broker.
  bool MayBeTheCause(const Ending& how) const;
};

// The trial of the log's newest generation, whose job is `job`. Thread-safe: a function of its
// arguments.
JobTrial TrialOf(const RunLog& log, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_ENDING_JOB_TRIAL_H_
