// Kills processes of a run at random moments, whether it is starting, loading, training, taking a
// cut or already failing.
//
// It works from a thread of its own and finds the processes by the log files that they write to. So
// it works even when the coordinator does not answer. It also does not use the launcher, which only
// the main thread may use. Linux only (/proc).
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

// A process of the run and its name, such as "embedding_ps_1".
struct RunProcess {
  std::string name;
  pid_t pid = 0;
};
std::vector<RunProcess> ProcessesOf(const std::string& run_dir);

class ChaosKiller {
 public:
  struct Options {
    std::string run_dir;
    std::vector<ChaosEvent> kills;  // as PlanRandomKills returns them
    // Reads a cut's files in `cut_folder` completely. DATA_LOSS if the cut is damaged.
    std::function<absl::Status(const std::string& cut_folder)> verify;
    // Receives a line of text for each kill.
    std::function<void(const std::string& line)> tell;
  };

  // Starts the thread. The first kill waits for the first cut, so that there is a cut to verify
  // after every kill. Each later kill waits until the launcher has started new processes after the
  // previous kill, so each kill costs one restart. Every kill, the first one included, then waits
  // for its `wait_seconds`.
  explicit ChaosKiller(Options options);
  ~ChaosKiller();
  ChaosKiller(const ChaosKiller&) = delete;
  ChaosKiller& operator=(const ChaosKiller&) = delete;

  // Ends the thread; no process is killed after that. Call it when the run is over. Idempotent.
  void Stop();

  // REQUIRES: after Stop
  int kills() const { return kills_; }
  // How many times the newest committed cut was read after a kill and was undamaged.
  int verified_cuts() const { return verified_cuts_; }
  // Cuts that were damaged; empty if none was.
  const std::string& problems() const { return problems_; }

 private:
  void Run();
  // Whether the launcher has started a process since the last kill, and that process is alive.
  // Before the first kill, any process of the run counts.
  bool HasNextLife() const;
  // False if no process of that name lives, for example because it has not been started yet.
  bool KillOne(const ChaosEvent& event);
  void Verify();
  // The next two functions return false if Stop was called meanwhile.
  bool WaitUntil(const std::function<bool()>& done);
  bool Wait(double seconds);

  const Options options_;
  std::set<pid_t> ended_;  // the run's processes at the time of the last kill
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
