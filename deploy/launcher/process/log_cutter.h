// Cuts the logs of a run's processes once they have become too long (common/file/file_history.h).
// It has its own thread, because the launcher must notice deaths while a log is copied. That takes
// a while, and for ever on a disk that hangs (then the logs continue to grow).
//
// Not thread-safe: for the launcher's main thread.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace satrap {

class LogCutter {
 public:
  // Cuts the file at a path if it is too long. Called on the thread, which may outlive this object.
  using CutFile = std::function<void(const std::string& path)>;
  // The thread is started by the first Cut.
  explicit LogCutter(CutFile cut_file);
  // Does not wait: the thread finishes what it has begun.
  ~LogCutter();
  LogCutter(const LogCutter&) = delete;
  LogCutter& operator=(const LogCutter&) = delete;

  // Begins to cut the files, in order, and returns at once. Does nothing if files of an earlier
  // call are still being cut, or if no thread can be started now.
  void Cut(const std::vector<std::string>& paths);

 private:
  struct Work;
  static void Serve(const std::shared_ptr<Work>& work);

  const std::shared_ptr<Work> work_;  // shared with the thread
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_
