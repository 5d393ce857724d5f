#include "deploy/coordinator/coordinator_engine.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/config/job_config.h"
#include "common/role/coordinator_client.h"
#include "common/role/role_flags.h"
#include "common/rpc/call_receiver.h"
#include "common/rpc/header.h"
#include "common/rpc/timeouts.h"
#include "common/thread/mutex.h"
#include "deploy/coordinator/split_leases.h"

namespace satrap {
namespace {

constexpr Role kMemberRoles[] = {DATA_LOADER, EMBEDDING_WORKER, EMBEDDING_PS, NN_WORKER};
constexpr int64_t kTickUs = 500 * 1000;
// A run that loses a member ends, so no run has a second generation yet.
constexpr uint64_t kFirstGeneration = 1;

struct MemberState {
  std::string Name() const { return MemberName(member.role(), member.index()); }

  Member member;             // role and index from the start; the rest once registered
  uint64_t incarnation = 0;  // 0: not registered
  bool ready = false;
  bool sends_heartbeats = false;  // at least one came
  bool told_end = false;          // it has been told, or nobody waits until it is
  int64_t last_heard_us = 0;
  LoaderProgress loader;
  bool has_loader = false;

  bool registered() const { return incarnation != 0; }
};

Envelope EnvelopeOf(const JobConfig& job, uint64_t run_id) {
  CHECK(run_id != 0);
  Envelope envelope;
  envelope.set_job_fingerprint(JobFingerprint(job));
  envelope.set_generation(kFirstGeneration);
  envelope.set_run_id(run_id);
  return envelope;
}

}  // namespace

struct CoordinatorEngine::Rep {
  Rep(const JobConfig& job, uint64_t run_id, Executor* executor,
      const CoordinatorTimeouts& timeouts)
      : job_name(job.name()),
        envelope(EnvelopeOf(job, run_id)),
        epochs(static_cast<uint64_t>(job.epochs())),
        executor(executor),
        timeouts(timeouts),
        leases_of_loaders(
            {"coordinator", envelope, static_cast<uint32_t>(job.data_loader().replicas()),
             rpc::RpcTimeouts().hold_ms * 1000},
            executor),
        start_us(executor->NowUs()),
        last_tick_us(start_us) {
    for (const Role role : kMemberRoles) {
      for (int index = 0; index < ReplicasOf(role, job); ++index) {
        MemberState state;
        state.member.set_role(role);
        state.member.set_index(index);
        members.push_back(std::move(state));
      }
    }
  }

  absl::StatusOr<RegisterAnswer> Register(const RegisterRequest& request) REQUIRES(mutex);
  absl::StatusOr<HeartbeatAnswer> Heartbeat(const HeartbeatRequest& request) REQUIRES(mutex);
  absl::StatusOr<LeaseSplitAnswer> LeaseSplit(const LeaseSplitRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreSetAnswer> StoreSet(const StoreSetRequest& request) REQUIRES(mutex);
  absl::StatusOr<StoreGetAnswer> StoreGet(const StoreGetRequest& request) REQUIRES(mutex);
  absl::StatusOr<FinishAnswer> Finish(const FinishRequest& request) REQUIRES(mutex);
  absl::StatusOr<FailAnswer> Fail(const FailRequest& request) REQUIRES(mutex);
  absl::StatusOr<StatusAnswer> Status(const StatusRequest& request) REQUIRES(mutex);

  absl::Status CheckRun(const Envelope& call) const {
    return rpc::CheckEnvelope(call, envelope, "the coordinator");
  }
  MemberState* Find(Role role, uint32_t index) REQUIRES(mutex);
  absl::Status RefuseSecond(MemberState* first, const Member& second) REQUIRES(mutex);
  void EstimateSamples(TrainProgress* progress) const REQUIRES(mutex);
  bool Ended() const REQUIRES(mutex) { return state == FINISHED || state == FAILED; }
  // The run has failed, unless it has ended already.
  void Fail(std::string reason) REQUIRES(mutex);
  void Tick() EXCLUDES(mutex);

  const std::string job_name;
  const Envelope envelope;
  const uint64_t epochs;
  Executor* const executor;
  const CoordinatorTimeouts timeouts;
  rpc::CallReceiver leases_of_loaders;
  const int64_t start_us;

  Mutex mutex;
  int64_t last_tick_us GUARDED_BY(mutex);
  RunState state GUARDED_BY(mutex) = STARTING;
  std::string stop_reason GUARDED_BY(mutex);
  std::vector<MemberState> members GUARDED_BY(mutex);
  SplitLeases leases GUARDED_BY(mutex);
  std::map<std::string, std::string> store GUARDED_BY(mutex);
  TrainProgress train GUARDED_BY(mutex);
  bool has_result GUARDED_BY(mutex) = false;
  RunResult result GUARDED_BY(mutex);
};

MemberState* CoordinatorEngine::Rep::Find(Role role, uint32_t index) {
  for (MemberState& state : members) {
    if (state.member.role() == role && state.member.index() == index) return &state;
  }
  return nullptr;
}

void CoordinatorEngine::Rep::Fail(std::string reason) {
  if (Ended()) return;
  state = FAILED;
  stop_reason = std::move(reason);
}

absl::StatusOr<RegisterAnswer> CoordinatorEngine::Rep::Register(const RegisterRequest& request) {
  const Member& member = request.member();
  const std::string name = MemberName(member.role(), member.index());
  if (request.incarnation() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, " registers without an incarnation"));
  }
  if (request.job_fingerprint() != envelope.job_fingerprint()) {
    return absl::FailedPreconditionError(absl::StrCat(
        name, " belongs to another job: its fingerprint is ", absl::Hex(request.job_fingerprint()),
        ", that of '", job_name, "' is ", absl::Hex(envelope.job_fingerprint())));
  }
  MemberState* known = Find(member.role(), member.index());
  if (known == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("job '", job_name, "' has no ", name));
  }
  if (known->registered() && known->incarnation != request.incarnation()) {
    return RefuseSecond(known, member);
  }
  known->member = member;
  known->incarnation = request.incarnation();
  // A process repeats Register until it has the answer, and then sends heartbeats. After those a
  // Register is a late copy from the network and says nothing about the process.
  if (!known->sends_heartbeats) known->last_heard_us = executor->NowUs();
  RegisterAnswer answer;
  *answer.mutable_envelope() = envelope;
  return answer;
}

// Another process than `first` registers under the same index.
absl::Status CoordinatorEngine::Rep::RefuseSecond(MemberState* first, const Member& second) {
  if (state == FINISHED) return absl::FailedPreconditionError("the run has finished");
  if (state == FAILED) return absl::FailedPreconditionError(kRunHasFailed + stop_reason);
  Fail(absl::StrCat(first->Name(), " (process ", first->member.pid(),
                    ") was started again, as process ", second.pid(), " at '", second.address(),
                    "', and what the first process held is lost: begin again from the last saved "
                    "model with --init_from. If both processes are alive, two were started with "
                    "the same --role_index"));
  // Nobody waits for a process that is most likely dead. If it lives, its next heartbeat tells it.
  first->told_end = true;
  return absl::FailedPreconditionError(stop_reason);
}

absl::StatusOr<HeartbeatAnswer> CoordinatorEngine::Rep::Heartbeat(const HeartbeatRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  MemberState* member = Find(request.role(), request.index());
  if (member == nullptr || !member->registered() || member->incarnation != request.incarnation()) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process is not the ", MemberName(request.role(), request.index()),
                     " that has registered with job '", job_name, "'"));
  }
  member->last_heard_us = executor->NowUs();
  member->sends_heartbeats = true;
  // Heartbeats of one process may overtake each other, and readiness never ends.
  if (request.ready()) member->ready = true;
  const bool complete = std::all_of(members.begin(), members.end(),
                                    [](const MemberState& each) { return each.ready; });
  if (state == STARTING && complete) state = RUNNING;
  if (request.has_train()) train = request.train();
  if (request.has_loader()) {
    member->loader = request.loader();
    member->has_loader = true;
  }
  HeartbeatAnswer answer;
  answer.set_state(state);
  answer.set_stop_reason(stop_reason);
  if (state != STARTING) {
    for (const MemberState& each : members) *answer.add_members() = each.member;
  }
  if (Ended()) member->told_end = true;
  return answer;
}

absl::StatusOr<LeaseSplitAnswer> CoordinatorEngine::Rep::LeaseSplit(
    const LeaseSplitRequest& request) {
  absl::StatusOr<absl::optional<uint32_t>> split =
      leases.Lease(request.epoch(), request.num_splits());
  if (!split.ok()) return split.status();
  LeaseSplitAnswer answer;
  answer.set_outcome(OUTCOME_DONE);
  if (split->has_value()) {
    answer.set_split(**split);
  } else {
    answer.set_ended(true);
  }
  return answer;
}

absl::StatusOr<StoreSetAnswer> CoordinatorEngine::Rep::StoreSet(const StoreSetRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  const auto [entry, inserted] = store.try_emplace(request.key(), request.value());
  if (!inserted && entry->second != request.value()) {
    return absl::AlreadyExistsError(absl::StrCat("'", request.key(), "' has another value"));
  }
  return StoreSetAnswer();
}

absl::StatusOr<StoreGetAnswer> CoordinatorEngine::Rep::StoreGet(const StoreGetRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  StoreGetAnswer answer;
  const auto entry = store.find(request.key());
  answer.set_found(entry != store.end());
  if (answer.found()) answer.set_value(entry->second);
  return answer;
}

absl::StatusOr<FinishAnswer> CoordinatorEngine::Rep::Finish(const FinishRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  if (!Ended()) {
    state = FINISHED;
    result = request.result();
    has_result = true;
  }
  return FinishAnswer();
}

absl::StatusOr<FailAnswer> CoordinatorEngine::Rep::Fail(const FailRequest& request) {
  RETURN_IF_ERROR(CheckRun(request.envelope()));
  Fail(absl::StrCat(MemberName(request.role(), request.index()), ": ", request.reason()));
  // It exits now, so nobody waits until it has been told.
  MemberState* member = Find(request.role(), request.index());
  if (member != nullptr) member->told_end = true;
  FailAnswer answer;
  answer.set_stop_reason(stop_reason);
  return answer;
}

// Rank 0 knows the number of samples only where the job says it. Otherwise each loader estimates an
// epoch's from what it has read, and the run's is their mean times the number of epochs.
void CoordinatorEngine::Rep::EstimateSamples(TrainProgress* progress) const {
  if (progress->expected_samples() > 0) return;
  uint64_t sum = 0;
  uint64_t loaders = 0;
  for (const MemberState& member : members) {
    if (member.loader.expected_train_samples() == 0) continue;
    sum += member.loader.expected_train_samples();
    ++loaders;
  }
  if (loaders == 0) return;
  const uint64_t expected = sum / loaders * epochs;
  progress->set_expected_samples(expected);
  if (progress->samples_per_second() <= 0) return;
  const uint64_t left = expected - std::min(expected, progress->samples());
  progress->set_seconds_left(static_cast<double>(left) / progress->samples_per_second());
}

absl::StatusOr<StatusAnswer> CoordinatorEngine::Rep::Status(const StatusRequest& request) {
  if (request.has_run_id() && request.run_id() != envelope.run_id()) {
    return absl::FailedPreconditionError(absl::StrCat("this is the coordinator of run ",
                                                      absl::Hex(envelope.run_id()), ", not of ",
                                                      absl::Hex(request.run_id())));
  }
  const int64_t now_us = executor->NowUs();
  StatusAnswer answer;
  answer.set_job_name(job_name);
  answer.set_state(state);
  answer.set_stop_reason(stop_reason);
  *answer.mutable_train() = train;
  EstimateSamples(answer.mutable_train());
  for (const MemberState& member : members) {
    RoleStatus* role = answer.add_roles();
    *role->mutable_member() = member.member;
    role->set_ready(member.ready);
    if (member.registered()) {
      role->set_seconds_since_heartbeat(static_cast<double>(now_us - member.last_heard_us) * 1e-6);
    }
    if (member.has_loader) *role->mutable_loader() = member.loader;
  }
  if (has_result) *answer.mutable_result() = result;
  answer.set_seconds(static_cast<double>(now_us - start_us) * 1e-6);
  answer.set_run_id(envelope.run_id());
  answer.set_generation(envelope.generation());
  return answer;
}

void CoordinatorEngine::Rep::Tick() {
  MutexLock lock(&mutex);
  const int64_t now_us = executor->NowUs();
  // A tick this late means that this process was suspended, and heartbeats could not arrive. That
  // time does not count as silence of the members.
  const int64_t stall_us = std::max<int64_t>(0, now_us - last_tick_us - 2 * kTickUs);
  last_tick_us = now_us;
  std::string missing;
  for (MemberState& member : members) {
    if (!member.registered()) {
      absl::StrAppend(&missing, missing.empty() ? "" : ", ", member.Name());
      continue;
    }
    // A heartbeat may have come since, and then none of the stall is that member's.
    member.last_heard_us = std::min(now_us, member.last_heard_us + stall_us);
    if (now_us - member.last_heard_us > timeouts.heartbeat_timeout_ms * 1000) {
      Fail(absl::StrCat(member.Name(), " (process ", member.member.pid(),
                        ") is lost: it sent no heartbeat for ",
                        timeouts.heartbeat_timeout_ms / 1000, " s"));
      member.told_end = true;
    }
  }
  if (state == STARTING && !missing.empty() &&
      now_us - start_us > timeouts.start_timeout_ms * 1000) {
    Fail(
        absl::StrCat("after ", timeouts.start_timeout_ms / 1000, " s there is still no ", missing));
  }
}

namespace {

// Parses the request, runs `serve` under the engine's lock, and serialises the answer.
template <typename Request, typename Rep, typename Answer>
absl::StatusOr<rpc::Message> Serve(Rep* rep, absl::StatusOr<Answer> (Rep::*serve)(const Request&),
                                   const rpc::Message& message) {
  Request request;
  if (!request.ParseFromString(message.header)) {
    return absl::InvalidArgumentError(absl::StrCat("malformed ", request.GetTypeName()));
  }
  absl::StatusOr<Answer> answer = absl::UnknownError("");
  {
    MutexLock lock(&rep->mutex);
    answer = (rep->*serve)(request);
  }
  if (!answer.ok()) return answer.status();
  rpc::Message reply;
  reply.header = answer->SerializeAsString();
  return reply;
}

// LeaseSplit, which a repeated attempt must not run twice.
template <typename Rep>
void ServeLease(Rep* rep, rpc::Message message, rpc::Callback respond) {
  rep->leases_of_loaders.template Receive<LeaseSplitRequest>(
      std::move(message), std::move(respond),
      [rep](const rpc::PendingAnswer& call, const LeaseSplitRequest& request, const Buffer&) {
        absl::StatusOr<LeaseSplitAnswer> answer = absl::UnknownError("");
        {
          MutexLock lock(&rep->mutex);
          answer = rep->LeaseSplit(request);
        }
        call.Finish(answer.ok() ? absl::StatusOr<rpc::Message>(rpc::MessageOf(*answer))
                                : answer.status());
      });
}

// Ticks for as long as the engine lives: the executor's timer holds only a weak pointer, because it
// may fire after the engine is gone.
template <typename Rep>
void TickLater(Executor* executor, std::weak_ptr<Rep> weak) {
  executor->PostAfter(kTickUs, [executor, weak] {
    const std::shared_ptr<Rep> rep = weak.lock();
    if (rep == nullptr) return;
    rep->Tick();
    TickLater(executor, weak);
  });
}

}  // namespace

CoordinatorEngine::CoordinatorEngine(const JobConfig& job, uint64_t run_id, Executor* executor,
                                     const CoordinatorTimeouts& timeouts)
    : rep_(std::make_shared<Rep>(job, run_id, executor, timeouts)) {
  TickLater(executor, std::weak_ptr<Rep>(rep_));
}

CoordinatorEngine::~CoordinatorEngine() = default;

void CoordinatorEngine::Handle(const rpc::Method& method, rpc::Message request,
                               rpc::Callback respond) {
  Rep* const rep = rep_.get();
  if (method == kHeartbeat) {
    respond(Serve(rep, &Rep::Heartbeat, request));
  } else if (method == kLeaseSplit) {
    ServeLease(rep, std::move(request), std::move(respond));
  } else if (method == kRegister) {
    respond(Serve(rep, &Rep::Register, request));
  } else if (method == kStoreSet) {
    respond(Serve(rep, &Rep::StoreSet, request));
  } else if (method == kStoreGet) {
    respond(Serve(rep, &Rep::StoreGet, request));
  } else if (method == kFinish) {
    respond(Serve(rep, &Rep::Finish, request));
  } else if (method == kFail) {
    respond(Serve(rep, &Rep::Fail, request));
  } else if (method == kStatus) {
    respond(Serve(rep, &Rep::Status, request));
  } else {
    respond(absl::UnimplementedError(absl::StrCat("the coordinator has no method ", method.path)));
  }
}

bool CoordinatorEngine::EveryoneKnowsTheEnd() const {
  MutexLock lock(&rep_->mutex);
  if (!rep_->Ended()) return false;
  return std::all_of(rep_->members.begin(), rep_->members.end(), [](const MemberState& member) {
    return !member.registered() || member.told_end;
  });
}

StatusAnswer CoordinatorEngine::Status() const {
  MutexLock lock(&rep_->mutex);
  return *rep_->Status(StatusRequest());
}

}  // namespace satrap
