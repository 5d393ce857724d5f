// Writes lines on a thread of its own, so that its caller never waits for the disk. Otherwise a
// disk that hangs would stop training without a visible reason. The queue is bounded; when it is
// full, lines are dropped and counted.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_REPORT_LINE_WRITER_H_
#define SATRAP_NN_WORKER_REPORT_LINE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "common/thread/clock.h"

namespace satrap {

class LineWriter {
 public:
  static constexpr size_t kMostLines = 4096;  // waiting; usually an hour's worth of a run
  static constexpr int64_t kHangMs = 5000;    // a write that takes longer hangs
  static constexpr int64_t kMostClosingMs = 5000;

  // write(line) writes a line, given without a newline, and returns whether that worked. It may
  // block, and only one thread at a time calls it. `write` is destroyed only after its last call
  // has returned. `now_ms` gives the time of a monotonic clock.
  explicit LineWriter(std::function<bool(absl::string_view line)> write,
                      std::function<int64_t()> now_ms = &MonotonicMs);
  // Waits until all lines are written, for kMostClosingMs at most. If a write still hangs then, it
  // continues in its thread until it returns or the process ends, and the lines after it are lost.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // Does not wait.
  void Append(absl::string_view line);

  struct Trouble {
    double hangs_seconds = 0;  // for how long the present write has hung; 0: it does not
    uint64_t dropped = 0;      // lines, because the queue was full or they could not be written
  };
  Trouble trouble() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // also of a thread that outlives this object
  std::thread thread_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_REPORT_LINE_WRITER_H_
