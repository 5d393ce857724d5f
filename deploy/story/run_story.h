// The story of a run in a cluster, as its Job shows it: progress, restarts, warnings and how it
// ends. It decides nothing: it asks the coordinator, and reads the end from the run's log, so that
// it may be started again at any time.
//
// Not thread-safe.

#ifndef SATRAP_DEPLOY_STORY_RUN_STORY_H_
#define SATRAP_DEPLOY_STORY_RUN_STORY_H_

#include <cstdint>
#include <functional>
#include <string>

namespace satrap {

struct StoryOptions {
  std::string run_dir;
  std::string coordinator;  // its address
  uint64_t submission = 1;
  // Gets why the run has failed, or FINISHED or STOPPED (RunState); empty: none.
  std::string termination_log;
  // Waits, and returns the signal that ended the wait, or 0.
  std::function<int(int64_t timeout_ms)> wait;
};

// Tells the story by `print`, which gets whole lines, until the run's log has the end of the
// submission, or a later submission, or until the coordinator refuses to begin the submission
// (common/refusal/refusal.h). Then writes what `satrap train` writes into the run's folder,
// report.json and report.txt, or failure.txt and ending.textproto, and quarantine.tsv; and prints
// the report to stdout. The times of the report are those of the log, because an earlier pod may
// have begun the story. Returns the exit code: 0 if the run has finished or stopped, or goes on as
// a later submission; 1 if it has failed; 128 and the number of a signal; kExitStartAgain if the
// log cannot be read or the report not written. The other files are tried for 10 s, and left out
// with a warning, because how the run has ended matters more.
int TellStory(const StoryOptions& options,
              const std::function<void(const std::string& text)>& print);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_RUN_STORY_H_
