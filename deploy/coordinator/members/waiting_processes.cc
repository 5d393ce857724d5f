#include "deploy/coordinator/members/waiting_processes.h"

#include <algorithm>
#include <utility>

namespace satrap {

void WaitingProcesses::OnAsked(const RegisterRequest& request, const std::string& why,
                               int64_t now_us) {
  const auto is_asking = [&request](const Process& process) {
    return process.incarnation == request.incarnation();
  };
  const auto is_gone = [now_us](const Process& process) {
    return now_us - process.last_us > kGoneUs;
  };
  processes_.erase(std::remove_if(processes_.begin(), processes_.end(), is_gone), processes_.end());
  const auto found = std::find_if(processes_.begin(), processes_.end(), is_asking);
  if (found != processes_.end() && !why.empty()) {
    found->why = why;
    found->last_us = now_us;
    return;
  }
  if (found != processes_.end()) processes_.erase(found);
  if (why.empty()) return;
  if (processes_.size() == kMost) {
    processes_.erase(
        std::min_element(processes_.begin(), processes_.end(),
                         [](const Process& a, const Process& b) { return a.last_us < b.last_us; }));
  }
  processes_.push_back(
      {request.member(), request.incarnation(), request.holder(), why, now_us, now_us});
}

void WaitingProcesses::AddTo(StatusAnswer* answer, int64_t now_us) const {
  for (const Process& process : processes_) {
    if (now_us - process.last_us > kGoneUs) continue;
    WaitingProcess* waiting = answer->add_waiting();
    *waiting->mutable_member() = process.member;
    waiting->set_holder(process.holder);
    waiting->set_why(process.why);
    waiting->set_seconds(static_cast<double>(now_us - process.first_us) * 1e-6);
  }
}

}  // namespace satrap
