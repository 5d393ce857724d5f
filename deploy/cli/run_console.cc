#include "deploy/cli/run_console.h"

#include <errno.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/count_text.h"

namespace satrap {
namespace {

// If stderr is closed, the text is lost, but the run continues.
void WriteToStderr(const std::string& text) {
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t bytes = write(STDERR_FILENO, text.data() + written, text.size() - written);
    if (bytes < 0 && errno != EINTR) return;
    if (bytes > 0) written += static_cast<size_t>(bytes);
  }
}

}  // namespace

struct RunConsole::Waiting {
  // Removes and returns the waiting text; "" if none is waiting.
  std::string Take() {
    MutexLock lock(&mutex);
    std::string taken = std::exchange(text, "");
    if (left_out > 0) {
      absl::StrAppend(&taken, "satrap: ", Counted(left_out, "message"),
                      " could not be written here and ", left_out == 1 ? "is" : "are",
                      " left out\n");
    }
    left_out = 0;
    return taken;
  }

  Mutex mutex;
  std::string text GUARDED_BY(mutex);
  uint64_t left_out GUARDED_BY(mutex) = 0;
};

RunConsole::RunConsole() : RunConsole(WriteToStderr, isatty(STDERR_FILENO) == 1) {}

RunConsole::RunConsole(Write write, bool is_terminal)
    : write_(std::move(write)),
      waiting_(std::make_shared<Waiting>()),
      progress_(STDERR_FILENO, is_terminal, TerminalColumns,
                [this](const std::string& text) { Add(text, /*is_progress=*/true); }),
      // While one task writes, a second one may be queued, so that text that is added meanwhile is
      // also written.
      thread_(/*most=*/2) {}

void RunConsole::ShowProgress(const StatusAnswer& status, int64_t now_ms) {
  progress_.Show(status, now_ms);
}

void RunConsole::Say(const std::string& message) {
  // End the progress line first, or the message would continue it.
  progress_.End();
  Add(absl::StrCat("satrap: ", message, "\n"), /*is_progress=*/false);
}

bool RunConsole::Drain(int64_t timeout_ms) {
  progress_.End();
  if (!thread_.Await(timeout_ms)) return false;
  // Text is left here only if the thread could not be started.
  const std::string text = waiting_->Take();
  if (!text.empty()) write_(text);
  return true;
}

void RunConsole::Add(const std::string& text, bool is_progress) {
  {
    MutexLock lock(&waiting_->mutex);
    const bool ends_line = text == "\n" && !absl::EndsWith(waiting_->text, "\n");
    if (is_progress && !waiting_->text.empty() && !ends_line) return;
    if (waiting_->text.size() + text.size() > kMostBytes) {
      ++waiting_->left_out;
      return;
    }
    waiting_->text += text;
  }
  thread_.Post([waiting = waiting_, write = write_] {
    const std::string text = waiting->Take();
    if (!text.empty()) write(text);
  });
}

}  // namespace satrap
