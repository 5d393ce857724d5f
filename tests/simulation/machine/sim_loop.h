// The simulation's executor and clock: one thread, one event queue, one seed. Tasks posted for the
// same moment run in an order drawn from the seed, so different seeds explore different
// interleavings and one seed replays exactly.
//
// A task may belong to an owner, which represents a process (sim_process.h): tasks of a dead owner
// never run, and tasks of a suspended owner run when it resumes.
//
// Not thread-safe: everything runs on the thread that calls Run.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_LOOP_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_LOOP_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "common/numeric/random.h"
#include "common/thread/executor.h"

namespace satrap::simulation {

class SimLoop final : public Executor {
 public:
  struct Owner {
    bool dead = false;
    int64_t stands_until_us = 0;
  };

  explicit SimLoop(uint64_t seed) : random_(seed) {}

  // Runs `task`, which has no owner, within a few simulated microseconds.
  void Post(Task task) override { PostFor(nullptr, std::move(task)); }
  void PostAfter(int64_t delay_us, Task task) override {
    PostAfterFor(nullptr, delay_us, std::move(task));
  }
  int64_t NowUs() const override { return now_us_; }

  // Like Post and PostAfter, for a task of `owner`, which must outlive the queued tasks. Null: the
  // task has no owner.
  void PostFor(const Owner* owner, Task task);
  void PostAfterFor(const Owner* owner, int64_t delay_us, Task task);

  // Runs events until `done`, which is called before each event, returns true. Returns false if the
  // system is stuck, that is, if one of these happens first: the queue runs empty, the simulated
  // clock passes `limit_us`, or `max_events` events have run.
  bool RunUntil(const std::function<bool()>& done, int64_t limit_us, int64_t max_events);

  // Drops all queued tasks. Call before the objects that they point to are destroyed.
  void DropTasks() { queue_ = {}; }

  int64_t events() const { return events_; }
  SplitMix64* random() { return &random_; }

 private:
  struct Event {
    int64_t at_us;
    uint64_t order;  // drawn: breaks ties between events of one moment
    const Owner* owner;
    mutable Task task;
    bool operator<(const Event& other) const {  // the queue's top is the earliest
      return at_us != other.at_us ? at_us > other.at_us : order > other.order;
    }
  };

  SplitMix64 random_;
  std::priority_queue<Event> queue_;
  int64_t now_us_ = 0;
  int64_t events_ = 0;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_LOOP_H_
