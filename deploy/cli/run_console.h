// What a run says on stderr while it is in progress: the progress line, and messages between.
//
// Writing to a terminal that somebody holds (Ctrl-S), or to a pipe whose reader stands still, takes
// as long as that lasts, so a thread of its own writes (side_thread.h). Meanwhile progress is
// dropped, and messages wait, up to a bound of their bytes; then they are left out and counted.
//
// Not thread-safe: for the launcher's main thread, which no call but Drain holds up.

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
  // Writes a text, for as long as that takes. Called on the thread, which may outlive this object.
  using Write = std::function<void(const std::string& text)>;
  static constexpr size_t kMostBytes = 256 << 10;  // of messages that wait

  // For stderr.
  RunConsole();
  // `write` writes to a terminal, or to something that is none.
  RunConsole(Write write, bool is_terminal);

  // As ProgressLine::Show.
  void ShowProgress(const StatusAnswer& status, int64_t now_ms);
  // Ends the progress line, and writes "satrap: MESSAGE" and the end of a line.
  void Say(const std::string& message);
  // Ends the progress line. Returns whether all is written, after waiting for that for at most
  // `timeout_ms`.
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
