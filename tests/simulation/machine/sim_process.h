// A process of the simulation: the executor and clock of its engines, and what ends or stops them.
//
// What a process has sent or written before its death stays: messages under way are delivered, also
// to the process that comes after it at an address. Nothing that it does afterwards has an effect:
// its tasks never run; and if it dies within its own code, at a kill point, its posts, calls,
// answers and file operations until that code returns go nowhere. Therefore its engines need not be
// destroyed when it dies: they are destroyed at the end of the world, when no task is left.
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
  // `life` counts the lives of the processes of all roles, from 1. `loop` is not owned. The process
  // must outlive the loop's queued tasks.
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

  // As SIGKILL. Idempotent.
  void Kill() { owner_.dead = true; }
  // As SIGKILL, in the middle of the process's own code: instead of the `nth` thing from now, from
  // 1, that it does to the world around it. 0: it does not die this way.
  void KillAtAct(int64_t nth) { acts_left_ = nth; }
  // Called before everything that a process does to the world around it: posting a task, sending a
  // request or an answer, changing the disk. Returns whether the process lives to do it.
  bool Acts() {
    if (acts_left_ > 0 && --acts_left_ == 0) Kill();
    return alive();
  }
  // As SIGSTOP, and SIGCONT after `us`.
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
