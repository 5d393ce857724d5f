// A process of the simulation: the executor and clock of its engines, and the means to kill or
// suspend the process.
//
// What a process has sent or written before its death stays: messages in flight are delivered, even
// to the process that follows a dead one at its address. What a process does after its death has no
// effect: its tasks never run, and if it dies within its own code, at a kill point, then its posts,
// calls, answers and file operations are dropped until that code returns. So its engines are not
// destroyed when it dies, but at the end of the world, when no task is left.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_MACHINE_SIM_PROCESS_H_
#define SATRAP_TESTS_SIMULATION_MACHINE_SIM_PROCESS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "common/thread/executor.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

class SimProcess final : public Executor {
 public:
  // `life` is the number, from 1, of the life that the process belongs to. `loop` is not owned. The
  // process must outlive the loop's queued tasks.
  SimProcess(SimLoop* loop, int life, std::string name)
      : loop_(loop), life_(life), name_(std::move(name)) {}
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  void Post(Task task) override {
    if (Acts()) loop_->PostFor(&owner_, std::move(task));
  }
  void PostAfter(int64_t delay_us, Task task) override {
    if (Acts()) loop_->PostAfterFor(&owner_, delay_us, std::move(task));
  }
  int64_t NowUs() const override { return loop_->NowUs(); }

  // Has the effect of SIGKILL. Idempotent.
  void Kill() { owner_.dead = true; }
  // Kills the process in the middle of its own code: at its `nth` act from now, counted from 1 (see
  // Acts), which it does not carry out. 0: it does not die in this way.
  void KillAtAct(int64_t nth) { acts_left_ = nth; }
  // Called before everything with which a process affects the world around it: posting a task,
  // sending a request or an answer, changing the disk. Returns whether the process is alive to do
  // it.
  bool Acts() {
    if (acts_left_ > 0 && --acts_left_ == 0) Kill();
    return alive();
  }
  // Has the effect of SIGSTOP now, and of SIGCONT after `us`.
  void StandStill(int64_t us) {
    owner_.stands_until_us = std::max(owner_.stands_until_us, loop_->NowUs() + us);
  }

  bool alive() const { return !owner_.dead; }
  bool stands_still() const { return owner_.stands_until_us > loop_->NowUs(); }
  const SimLoop::Owner* owner() const { return &owner_; }
  int life() const { return life_; }
  const std::string& name() const { return name_; }  // as "embedding worker 0 of life 2"

 private:
  SimLoop* const loop_;
  const int life_;
  const std::string name_;
  SimLoop::Owner owner_;
  int64_t acts_left_ = 0;  // until it dies; 0: no limit
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_MACHINE_SIM_PROCESS_H_
