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
  // The next generation has another job if this one cannot begin: then `change` says, for people,
  // in which fields this one differs from that; empty: there is none to go back to.
  std::string change;
  // Somebody resumed the run with the job, and waits. Otherwise it is that of a `satrap scale` of a
  // run in progress, which goes on.
  bool resumed = false;
  // The job reads other topics than the one to go back to, or asks other brokers for them.
  bool changes_topics = false;

  // Whether the change may be why the generation cannot begin, which ends by `how`, and no restart
  // cures that. A broker that is away would keep the job before from beginning, too, unless that
  // one asks another.
  bool MayBeTheCause(const Ending& how) const;
};

// Of the newest generation of the log, whose job is `job`. Thread-safe: a function of its
// arguments.
JobTrial TrialOf(const RunLog& log, const JobConfig& job);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_COORDINATOR_JOB_TRIAL_H_
