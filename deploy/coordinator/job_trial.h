// Whether a generation has a job on trial (common/checkpoint/job_of_run.h): what the coordinator
// writes into the log about that.

#ifndef SATRAP_DEPLOY_COORDINATOR_JOB_TRIAL_H_
#define SATRAP_DEPLOY_COORDINATOR_JOB_TRIAL_H_

#include <string>

#include "common/checkpoint/run_log.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"

namespace satrap {

struct JobTrial {
  // The log does not show yet that a generation of this job has begun to train.
  bool writes_running = false;
  // If this generation cannot begin, the next one has another job. `change` then says, for people,
  // in which fields this job differs from that one; empty: there is no job to go back to.
  std::string change;
  // Somebody resumed the run with the job, and waits. Otherwise the job comes from a `satrap scale`
  // of a run in progress, which goes on.
  bool resumed = false;
  // The job reads other topics than the one to go back to, or asks other brokers for them.
  bool changes_topics = false;

  // Whether the change may be why the generation, which ends by `how`, cannot begin, and no restart
  // cures that. A broker that is away would keep the earlier job from beginning, too, unless that
  // job asks another broker.
  bool MayBeTheCause(const Ending& how) const;
};

// The trial of the newest generation of the log, whose job is `job`. Thread-safe: a function of its
// arguments.
JobTrial TrialOf(const RunLog& log, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_JOB_TRIAL_H_
