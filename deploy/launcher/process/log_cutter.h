// Keeps the logs of a run's processes short: moves the content of a log that is too long to older
// files (common/file/file_history.h). This happens in a separate thread (side_thread.h), because
// copying a log takes a while. On a disk that hangs the copying never ends, and the logs continue
// to grow.
//
// Not thread-safe: only the launcher's main thread may use it.

#ifndef SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_
#define SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_

#include <functional>
#include <string>
#include <vector>

#include "deploy/launcher/process/side_thread.h"

namespace satrap {

class LogCutter {
 public:
  // Moves the content of the file at `path` if it is too long. Called on the separate thread, which
  // may outlive this object.
  using CutFile = std::function<void(const std::string& path)>;
  explicit LogCutter(CutFile cut_file);

  // Starts to shorten the files, in order, and returns at once. Does nothing if files of an earlier
  // call are still being shortened, or if no thread can be started now.
  void Cut(const std::vector<std::string>& paths);

 private:
  const CutFile cut_file_;
  SideThread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_LAUNCHER_PROCESS_LOG_CUTTER_H_
