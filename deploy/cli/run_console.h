// What a run prints to stderr while it is in progress: the progress line, and messages in between.
//
// A write can take arbitrarily long if the terminal is paused (Ctrl-S) or a pipe's reader does not
// read, so a separate thread writes (side_thread.h). Meanwhile progress lines are dropped and
// messages wait; beyond a limit on their total size, messages are left out and counted.
//
// Not thread-safe: only the launcher's main thread may use it. Only Drain may block that thread.

#ifndef SATRAP_DEPLOY_CLI_RUN_CONSOLE_H_
#define SATRAP_DEPLOY_CLI_RUN_CONSOLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "deploy/launcher/process/side_thread.h"
#include "deploy/report/progress_line.h"
#include "proto/control.pb.h"

namespace satrap {

class RunConsole {
 public:
  // Writes a text, and blocks until it is written. Called on the thread, which may outlive this
  // object.
  using Write = std::function<void(const std::string& text)>;
  static constexpr size_t kMostBytes = 256 << 10;  // total size of waiting messages

  // Writes to stderr.
  RunConsole();
  // Calls `write` to write. `is_terminal`: whether `write` writes to a terminal.
  RunConsole(Write write, bool is_terminal);

  // Like ProgressLine::Show.
  void ShowProgress(const StatusAnswer& status, int64_t now_ms);
  // Ends the progress line, and writes the line "satrap: MESSAGE".
  void Say(const std::string& message);
  // Ends the progress line, and waits at most `timeout_ms` until everything is written. Returns
  // whether it is.
  bool Drain(int64_t timeout_ms);

 private:
  struct Waiting;
  void Add(const std::string& text, bool is_progress);

  const Write write_;
  const std::shared_ptr<Waiting> waiting_;  // shared with the thread
  ProgressLine progress_;
  SideThread thread_;
};

}  // namespace satrap

#endif  // SATRAP_DEPLOY_CLI_RUN_CONSOLE_H_
