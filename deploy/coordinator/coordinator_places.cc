// Which processes have the places of the generation's members, and whose failures count.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/role/ending.h"
#include "common/role/protocol_fingerprint.h"
#include "common/role/role_flags.h"
#include "deploy/coordinator/coordinator_rep.h"

namespace satrap {

std::string CoordinatorEngine::Rep::WhyWait(const RegisterRequest& request) const {
  const bool other_protocol = request.has_protocol() && request.protocol() != ProtocolFingerprint();
  const bool other_build =
      !options.build.empty() && !request.build().empty() && request.build() != options.build;
  if (!other_protocol && !other_build) return "";
  const Member& member = request.member();
  return absl::StrCat(MemberName(member.role(), static_cast<int>(member.index())),
                      " was built from other sources than the coordinator: the processes of a run "
                      "must be of one build");
}

absl::StatusOr<RegisterAnswer> CoordinatorEngine::Rep::Register(const RegisterRequest& request) {
  const Member& member = request.member();
  std::string why_wait = WhyWait(request);
  if (!why_wait.empty() && request.holder().empty()) return absl::InvalidArgumentError(why_wait);
  // A role that was just replaced must not train in a generation whose end is decided.
  if (end.state() == RESTARTING || end.is_linking()) why_wait = "this generation is over";
  if (why_wait.empty()) RETURN_IF_ERROR(members.Register(request, AwakeUs(), &why_wait));
  waiting.OnAsked(request, why_wait, executor->NowUs());
  RegisterAnswer answer;
  if (!why_wait.empty()) {
    answer.set_wait(true);
    answer.set_why_wait(why_wait);
    return answer;
  }
  *answer.mutable_envelope() = envelope;
  *answer.mutable_job() = job;
  answer.set_cut(cut_folder);
  if (options.in_pods) answer.set_leaves(true);
  *answer.mutable_position() = position;
  const bool rank0 = member.role() == NN_WORKER && member.index() == 0;
  if (rank0 || member.role() == DATA_LOADER) *answer.mutable_ledger() = ledger;
  return answer;
}

absl::StatusOr<FailAnswer> CoordinatorEngine::Rep::Fail(const FailRequest& request,
                                                        std::string* stranger) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  const int index = static_cast<int>(request.index());
  Ending failure =
      EndingOf(Ending::MEMBER_FAILED, request.role(), index,
               absl::StrCat(MemberName(request.role(), index), ": ", request.ending().text()));
  failure.set_advice(request.ending().advice());
  failure.set_kind(request.ending().kind());
  if (!end.has_ended() && !end.is_linking() && !members.IsOfMember(request, AwakeUs())) {
    // The process is started again. If the member is dead, it ends the generation once it is heard.
    *stranger = absl::StrCat("a process that is no member has failed: ", failure.text());
    FailAnswer again;
    again.set_state(RESTARTING);
    *again.mutable_ending() = std::move(failure);
    return again;
  }
  end.EndBy(std::move(failure));
  // The failed member exits now. So the coordinator need not wait until this member has been told
  // that the generation has ended.
  members.SetTold(request.role(), request.index());
  return end.Told();
}

// If a tick is late, the process was suspended and could not receive heartbeats. That time does not
// count as silence of the members.
int64_t CoordinatorEngine::Rep::StallUs(int64_t now_us) const {
  return std::max<int64_t>(0, now_us - last_tick_us - 2 * kTickUs);
}

}  // namespace satrap
