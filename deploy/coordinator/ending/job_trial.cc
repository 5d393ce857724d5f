#include "deploy/coordinator/ending/job_trial.h"

#include "absl/strings/str_cat.h"
#include "common/checkpoint/entries/job_of_run.h"
#include "common/config/job_change.h"
#include "common/role/cause_table.h"
#include "deploy/coordinator/topics/topic_resolution.h"

namespace satrap {
namespace {

// The topics that a job reads, and its settings for reading them.
std::string TopicsText(const JobConfig& job) {
  std::string text;
  for (const TopicInput& stream : TopicInputsOf(job)) {
    absl::StrAppend(&text, stream.path, " ", stream.config.ShortDebugString(), "\n");
  }
  return text;
}

}  // namespace

bool JobTrial::MayBeTheCause(const Ending& how) const {
  if (change.empty()) return false;
  return changes_topics || RuleOf(how).follows != Follows::kRunEndsForNow;
}

JobTrial TrialOf(const RunLog& log, const JobConfig& job) {
  JobTrial trial;
  if (job.action() != JobConfig::TRAIN || log.end() != nullptr) return trial;
  const JobConfig* before = JobToGoBackTo(log.entries(), job);
  trial.writes_running = before != nullptr || LastThatRan(log.entries()) == nullptr;
  if (before == nullptr) return trial;
  trial.change = JobChangeText(*before, job);
  trial.changes_topics = TopicsText(*before) != TopicsText(job);
  // A generation that a restart began has the job of the previous one. So find the first generation
  // with this job.
  for (auto entry = log.entries().rbegin(); entry != log.entries().rend(); ++entry) {
    if (!entry->has_generation() || entry->generation().began() == BEGAN_RESTART ||
        entry->generation().began() == BEGAN_MOVED) {
      continue;
    }
    trial.resumed = entry->generation().began() == BEGAN_RESUME;
    break;
  }
  return trial;
}

}  // namespace satrap
