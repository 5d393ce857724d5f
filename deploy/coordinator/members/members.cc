#include "deploy/coordinator/members/members.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/role/ending.h"
#include "common/role/role_flags.h"

namespace satrap {
namespace {

constexpr Role kMemberRoles[] = {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER};
// How many processes are kept, for each index of a role, that have registered but sent no
// heartbeat. More of them come only from a program that is started again and again, so the oldest
// are dead and can be forgotten.
constexpr size_t kMaxRegistered = 64;

}  // namespace

std::string Members::Entry::Name() const { return MemberName(member.role(), member.index()); }

Ending Members::Entry::Lost(const std::string& text) const {
  return EndingOf(Ending::MEMBER_LOST, member.role(), static_cast<int>(member.index()), text);
}

Members::Members(const JobConfig& job) : job_name_(job.name()) {
  for (const Role role : kMemberRoles) {
    for (int index = 0; index < ReplicasOf(role, job); ++index) {
      Entry entry;
      entry.member.set_role(role);
      entry.member.set_index(static_cast<uint32_t>(index));
      entries_.push_back(std::move(entry));
    }
  }
}

Members::Entry* Members::Find(Role role, uint32_t index) {
  for (Entry& entry : entries_) {
    if (entry.member.role() == role && entry.member.index() == index) return &entry;
  }
  return nullptr;
}

Members::Process* Members::Entry::FindRegistered(uint64_t of_incarnation) {
  for (Process& process : registered) {
    if (process.incarnation == of_incarnation) return &process;
  }
  return nullptr;
}

void Members::Entry::Take(const Process& process) {
  member = process.member;
  incarnation = process.incarnation;
  holder = process.holder;
}

void Members::Entry::Forget(uint64_t of_incarnation) {
  const auto is_meant = [of_incarnation](const Process& process) {
    return process.incarnation == of_incarnation;
  };
  registered.erase(std::remove_if(registered.begin(), registered.end(), is_meant),
                   registered.end());
}

bool Members::Entry::IsTwin(const std::string& other) const {
  return heard() && !holder.empty() && !other.empty() && holder != other;
}

bool Members::Entry::HasLivingTwinOf(const std::string& other, int64_t now_us) const {
  return IsTwin(other) && now_us - last_heard_us <= kSpareSilenceUs;
}

std::string Members::Entry::TakenBy() const {
  if (!heard()) return absl::StrCat(Name(), " ran in another pod until now");
  return absl::StrCat(Name(), " already runs in another pod (process ", member.pid(), " at '",
                      member.address(), "', pod ", holder, ")");
}

absl::Status Members::Register(const RegisterRequest& request, int64_t now_us,
                               std::string* why_wait) {
  const Member& member = request.member();
  const std::string name = MemberName(member.role(), static_cast<int>(member.index()));
  if (request.incarnation() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, " registers without an incarnation"));
  }
  Entry* entry = Find(member.role(), member.index());
  if (entry == nullptr) {
    const std::string missing = absl::StrCat("job '", job_name_, "' has no ", name);
    if (request.holder().empty()) return absl::FailedPreconditionError(missing);
    *why_wait = missing;
    return absl::OkStatus();
  }
  const Process* registered = entry->FindRegistered(request.incarnation());
  if (registered != nullptr && !registered->waits) return absl::OkStatus();
  if (registered != nullptr || entry->HasLivingTwinOf(request.holder(), now_us)) {
    *why_wait = entry->TakenBy();
    return absl::OkStatus();
  }
  entry->registered.push_back({member, request.incarnation(), request.holder(), request.before()});
  if (entry->registered.size() > kMaxRegistered) entry->registered.pop_front();
  if (!entry->heard()) {
    entry->last_heard_us = now_us;
    entry->told = false;
  }
  return absl::OkStatus();
}

std::string Members::Entry::EndBefore(const Process& sender) const {
  const bool is_of_member = !holder.empty() && sender.holder == holder &&
                            sender.before.has_text() &&
                            sender.before.origin().pid() == member.pid();
  return is_of_member ? sender.before.text() : "";
}

// `sender` is not the member.
Standing Members::Entry::Judge(Process* sender, int64_t now_us, bool may_replace) {
  Standing standing;
  if (sender->waits || HasLivingTwinOf(sender->holder, now_us)) {
    sender->waits = true;
    standing.spare = EndingOf(Ending::OTHER, TakenBy());
    return standing;
  }
  const bool is_twin = IsTwin(sender->holder);
  if (is_twin && may_replace) {
    const Process taker = *sender;
    Free();
    Take(taker);
    return standing;
  }
  std::string text = absl::StrCat(Name(), " (process ", member.pid(), ") ");
  if (const std::string end = EndBefore(*sender); !end.empty()) {
    absl::StrAppend(&text, end, "; it was started again, as process ", sender->member.pid(),
                    " at '", sender->member.address(), "'");
  } else if (is_twin) {
    absl::StrAppend(&text, "is lost: it was silent for over ", kSpareSilenceUs / 1000000,
                    " s, and process ", sender->member.pid(), " at '", sender->member.address(),
                    "', of another pod, takes its place");
  } else {
    absl::StrAppend(&text, "was started again, as process ", sender->member.pid(), " at '",
                    sender->member.address(),
                    "', and what the first process held is lost. If both are alive, two were "
                    "started with the same --role_index");
  }
  standing.conflict = Lost(text);
  // Do not wait until the first process has been told of this, because it is most likely dead. If
  // it is alive, the answer to its next heartbeat tells it.
  told = true;
  return standing;
}

absl::StatusOr<Standing> Members::Heartbeat(const HeartbeatRequest& request, int64_t now_us,
                                            bool may_replace) {
  Entry* entry = Find(request.role(), request.index());
  Process* sender = nullptr;
  if (entry != nullptr && request.incarnation() != 0) {
    sender = entry->FindRegistered(request.incarnation());
  }
  const bool is_member =
      entry != nullptr && entry->heard() && entry->incarnation == request.incarnation();
  if (sender == nullptr && !is_member) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process is not the ", MemberName(request.role(), static_cast<int>(request.index())),
        " that has registered with job '", job_name_, "'"));
  }
  if (!entry->heard() && !sender->waits) entry->Take(*sender);
  if (entry->incarnation != request.incarnation()) {
    Standing standing = entry->Judge(sender, now_us, may_replace);
    if (entry->incarnation != request.incarnation()) return standing;
  }
  entry->last_heard_us = now_us;
  // Never reset `ready`: a process stays ready, and an older heartbeat may arrive late.
  if (request.ready()) entry->ready = true;
  if (request.has_memory_bytes()) entry->memory_bytes = request.memory_bytes();
  if (request.has_loader()) {
    entry->loader = request.loader();
    entry->has_loader = true;
  }
  return Standing();
}

bool Members::IsOfMember(const FailRequest& request, int64_t now_us) {
  Entry* entry = Find(request.role(), request.index());
  if (entry == nullptr || request.incarnation() == 0) return false;
  const Process* sender = entry->FindRegistered(request.incarnation());
  if (!entry->heard() && sender != nullptr && sender->holder.empty()) {
    entry->Take(*sender);
    entry->last_heard_us = now_us;
  }
  return entry->incarnation == request.incarnation();
}

absl::optional<Ending> Members::FindSilent(int64_t now_us, int64_t stall_us, int64_t timeout_us) {
  absl::optional<Ending> silent;
  for (Entry& entry : entries_) {
    // The new time is never later than now, even for a member that was heard from after the stall
    // had begun.
    entry.last_heard_us = std::min(now_us, entry.last_heard_us + stall_us);
    if (now_us - entry.last_heard_us <= timeout_us) continue;
    entry.told = true;
    // A process without any heartbeat does not count as lost: its Register may have arrived after
    // it died.
    if (silent.has_value() || !entry.heard()) continue;
    silent = entry.Lost(absl::StrCat(entry.Name(), " (process ", entry.member.pid(),
                                     ") is lost: it sent no heartbeat for ", timeout_us / 1000000,
                                     " s"));
  }
  return silent;
}

void Members::Entry::Free() {
  Forget(incarnation);
  Entry free;
  free.member.set_role(member.role());
  free.member.set_index(member.index());
  free.registered = std::move(registered);
  *this = std::move(free);
}

void Members::Free(Role role, uint32_t index) {
  Entry* entry = Find(role, index);
  if (entry != nullptr) entry->Free();
}

void Members::FreeSilent(int64_t now_us, int64_t timeout_us) {
  for (Entry& entry : entries_) {
    if (entry.heard() && now_us - entry.last_heard_us > timeout_us) entry.Free();
  }
}

std::string Members::Unheard() const {
  std::string names;
  for (const Entry& entry : entries_) {
    if (!entry.heard()) absl::StrAppend(&names, names.empty() ? "" : ", ", entry.Name());
  }
  return names;
}

bool Members::AllReady() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.ready; });
}

void Members::SetTold(Role role, uint32_t index) {
  Entry* entry = Find(role, index);
  if (entry != nullptr) entry->told = true;
}

bool Members::AllTold() const {
  return std::all_of(entries_.begin(), entries_.end(),
                     [](const Entry& entry) { return entry.registered.empty() || entry.told; });
}

void Members::AddTo(HeartbeatAnswer* answer) const {
  for (const Entry& entry : entries_) *answer->add_members() = entry.member;
}

void Members::AddTo(StatusAnswer* answer, int64_t now_us) const {
  for (const Entry& entry : entries_) {
    RoleStatus* role = answer->add_roles();
    *role->mutable_member() = entry.member;
    role->set_ready(entry.ready);
    if (entry.heard()) {
      role->set_seconds_since_heartbeat(static_cast<double>(now_us - entry.last_heard_us) * 1e-6);
    } else if (!entry.registered.empty()) {
      *role->mutable_member() = entry.registered.back().member;
    }
    if (entry.has_loader) *role->mutable_loader() = entry.loader;
    if (entry.memory_bytes != 0) role->set_memory_bytes(entry.memory_bytes);
  }
}

uint64_t Members::ExpectedTrainSamples() const {
  uint64_t sum = 0;
  uint64_t loaders = 0;
  for (const Entry& entry : entries_) {
    if (entry.loader.expected_train_samples() == 0) continue;
    sum += entry.loader.expected_train_samples();
    ++loaders;
  }
  return loaders == 0 ? 0 : sum / loaders;
}

}  // namespace satrap
