#include "common/checkpoint/entries/job_of_run.h"

#include <cstdint>

namespace satrap {
namespace {

const GenerationEntry* Newest(const std::vector<RunLogEntry>& entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_generation()) return &entry->generation();
  }
  return nullptr;
}

}  // namespace

bool IsSameJob(JobConfig a, JobConfig b) {
  a.clear_run_dir();
  b.clear_run_dir();
  return a.SerializeAsString() == b.SerializeAsString();
}

const GenerationEntry* LastThatRan(const std::vector<RunLogEntry>& entries) {
  uint64_t ran = 0;
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (ran == 0 && entry->has_running()) ran = entry->running().generation();
    if (ran == 0 && entry->has_cut()) ran = entry->cut().generation();
    if (ran != 0 && entry->has_generation() && entry->generation().generation() == ran) {
      return &entry->generation();
    }
  }
  return nullptr;
}

const DroppedEntry* DroppedChange(const std::vector<RunLogEntry>& entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->has_dropped()) return &entry->dropped();
    if (entry->has_generation()) break;
  }
  return nullptr;
}

const JobConfig* JobOfNext(const std::vector<RunLogEntry>& entries) {
  const GenerationEntry* next = DroppedChange(entries) != nullptr ? LastThatRan(entries) : nullptr;
  if (next == nullptr) next = Newest(entries);
  return next == nullptr ? nullptr : &next->job();
}

const JobConfig* JobToGoBackTo(const std::vector<RunLogEntry>& entries, const JobConfig& job) {
  const GenerationEntry* ran = LastThatRan(entries);
  if (ran == nullptr || IsSameJob(ran->job(), job)) return nullptr;
  return &ran->job();
}

}  // namespace satrap
