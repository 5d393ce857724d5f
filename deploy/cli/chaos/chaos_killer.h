// Kills processes of a run at random moments, whether it is starting, loading, training, taking a
// cut or already failing.
//
// It works from a thread of its own and finds the processes by the log files that they write to, so
// it needs neither a coordinator that answers nor the launcher, which is for the main thread alone.
// Linux only (/proc).
//
// Thread-compatible. The destructor calls Stop.

#ifndef SATRAP_DEPLOY_CLI_CHAOS_CHAOS_KILLER_H_
#define SATRAP_DEPLOY_CLI_CHAOS_CHAOS_KILLER_H_

#include <sys/types.h>

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/thread/mutex.h"
#include "deploy/cli/chaos/chaos_plan.h"

namespace satrap {

// A process of a run at one moment, with a name such as "embedding_ps_1".
struct RunProcess {
  std::string name;
  pid_t pid = 0;
};
std::vector<RunProcess> ProcessesOf(const std::string& run_dir);

class ChaosKiller {
 public:
  struct Options {
    std::string run_dir;
    std::vector<ChaosEvent> kills;  // PlanRandomKills
    // Reads through the cut in a folder. DATA_LOSS if it is damaged.
    std::function<absl::Status(const std::string& cut_folder)> verify;
    // Gets a line for each kill.
    std::function<void(const std::string& line)> tell;
  };

  // Begins. The first kill waits for the first cut, so that there is one to verify after each kill.
  // Each kill waits for a process of a later life than the one that the previous kill ended, and
  // then for `wait_seconds`, so it costs one restart.
  explicit ChaosKiller(Options options);
  ~ChaosKiller();
  ChaosKiller(const ChaosKiller&) = delete;
  ChaosKiller& operator=(const ChaosKiller&) = delete;

  // Ends the thread; no process is killed after that. Call it when the run is over. Idempotent.
  void Stop();

  // REQUIRES: after Stop
  int kills() const { return kills_; }
  // How many times the newest committed cut was read through after a kill and was whole.
  int verified_cuts() const { return verified_cuts_; }
  // Cuts that were damaged; empty if none was.
  const std::string& problems() const { return problems_; }

 private:
  void Run();
  // Whether there is a process of a later life than the one that the last kill ended.
  bool HasNextLife() const;
  // False if no process of that name lives, or none yet.
  bool KillOne(const ChaosEvent& event);
  void Verify();
  // The next two return false if Stop was called meanwhile.
  bool WaitUntil(const std::function<bool()>& done);
  bool Wait(double seconds);

  const Options options_;
  std::set<pid_t> ended_;  // the processes of the life that the last kill ended
  int kills_ = 0;
  int verified_cuts_ = 0;
  std::string problems_;
  Mutex mutex_;
  CondVar changed_;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_CHAOS_CHAOS_KILLER_H_
