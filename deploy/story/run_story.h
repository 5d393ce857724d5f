// Shows the story of a run in a cluster: progress, restarts, warnings and how the run ends. The
// run's Job calls this. The story does not affect the run: it asks the coordinator for the status
// and reads the end from the run's log, so it may be started again at any time.
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
  // How long the coordinator may be silent before the submission has begun.
  double start_seconds = 600;
  // The file that receives FINISHED or STOPPED (RunState), or the reason why the run has failed.
  // Empty: no file.
  std::string termination_log;
  // Waits for at most `timeout_ms`. Returns the signal that ended the wait, or 0.
  std::function<int(int64_t timeout_ms)> wait;
};

// Passes the story to `print`, in whole lines, until the run's log has the end of the submission or
// a later submission, or until the coordinator refuses to begin the submission
// (common/refusal/refusal.h). If no coordinator answers for `start_seconds` before the submission
// has begun, leaves a refusal itself. Then writes the same files into the run's folder as `satrap
// train`: report.json and report.txt, or failure.txt and ending.textproto; and quarantine.tsv.
// Prints the report to stdout. The report takes its times from the log, because an earlier pod may
// have begun the story.
//
// Returns the exit code: 0 if the run has finished or stopped, or continues as a later submission;
// 1 if it has failed; 128 plus the number of a signal; kExitStartAgain if the log cannot be read or
// the report cannot be written. Writing any of the other files is tried for 10 s. Then the file is
// left out with a warning, because how the run has ended matters more.
int TellStory(const StoryOptions& options,
              const std::function<void(const std::string& text)>& print);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_STORY_RUN_STORY_H_
