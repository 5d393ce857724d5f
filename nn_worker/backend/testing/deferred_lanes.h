// The lanes of DeferredBackend (Lane in device_memory.h).
//
// Thread-compatible.

#ifndef SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_LANES_H_
#define SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_LANES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "nn_worker/backend/device_memory.h"

namespace satrap::deferred {

// What is enqueued in the lanes, and how far each has run. A lane runs only as far as somebody
// waits for it.
class Lanes {
 public:
  // A point of a lane: it has been reached when `count` entries have run.
  struct Point {
    Lane lane = Lane::kOperations;
    int64_t count = 0;
  };

  void Enqueue(Lane lane, std::function<void()> entry) {
    Of(lane).entries.push_back(std::move(entry));
  }
  void WaitFor(Lane lane, Point point) {
    Enqueue(lane, [this, point] { RunTo(point); });
  }
  Point End(Lane lane) const {
    const Queue& queue = Of(lane);
    return {lane, queue.run + static_cast<int64_t>(queue.entries.size())};
  }
  bool Reached(Point point) const { return Of(point.lane).run >= point.count; }
  bool Empty(Lane lane) const { return Of(lane).entries.empty(); }
  void RunTo(Point point) {
    Queue& queue = Of(point.lane);
    while (queue.run < point.count) {
      const std::function<void()> entry = std::move(queue.entries.front());
      queue.entries.pop_front();
      entry();
      ++queue.run;
    }
  }
  // Copies out run before the operations that they do not wait for, and copies in after those that
  // do not wait for them: a WaitFor that is missing gives old values.
  void RunAll() {
    for (const Lane lane : {Lane::kCopiesOut, Lane::kOperations, Lane::kCopiesIn}) RunTo(End(lane));
  }

 private:
  struct Queue {
    std::deque<std::function<void()>> entries;
    int64_t run = 0;
  };
  Queue& Of(Lane lane) { return queues_[static_cast<int>(lane)]; }
  const Queue& Of(Lane lane) const { return queues_[static_cast<int>(lane)]; }

  Queue queues_[3];
};

}  // namespace satrap::deferred

#endif  // SATRAP_NN_WORKER_BACKEND_TESTING_DEFERRED_LANES_H_
