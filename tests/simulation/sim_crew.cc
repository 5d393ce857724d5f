#include "tests/simulation/sim_crew.h"

#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/chunk/chunked_channel.h"
#include "common/chunk/chunked_handler.h"

namespace satrap::simulation {
namespace {

constexpr int kMaxWorkers = 3;
constexpr int kMaxPss = 2;
constexpr int64_t kStartingHeartbeatMs = 20;
// The limit for one message, and also for all incomplete messages that a process holds. It is only
// as large as a few messages of a world, so that messages have to wait for one another.
constexpr int64_t kLargestMessageBytes = 8192;
// This time is longer than an attempt waits for a chunk, so that a transfer is given up only after
// its sender was suspended.
constexpr int64_t kChunkDeadlineUs = 150 * 1000;
constexpr int64_t kNever = int64_t{1} << 50;
// This time is longer than the pause between two attempts of a call that finds no room.
constexpr int64_t kTurnUs = 3 * 1000 * 1000;
constexpr int kTwinIncarnation = 900;  // above those of members

const char* NameOf(Role role) {
  switch (role) {
    case COORDINATOR:
      return "coordinator";
    case DATA_LOADER:
      return "loader";
    case EMBEDDING_WORKER:
      return "embedding worker";
    case EMBEDDING_PS:
      return "embedding PS";
    case NN_WORKER:
      return "rank";
  }
  return "";
}

std::string PodOf(Role role, int index) {
  return absl::StrCat("pod of ", NameOf(role), " ", index);
}

}  // namespace

rpc::RpcTimeouts SimTimeouts() {
  rpc::RpcTimeouts timeouts;
  timeouts.attempt_timeout_ms = 60;
  timeouts.hold_ms = 30;
  timeouts.silence_timeout_ms = kTimeLimitUs;
  return timeouts;
}

SimAddresses::SimAddresses(SimNetwork* network) : coordinator(network->NewAddress()) {
  for (int i = 0; i < kMaxWorkers; ++i) workers.push_back(network->NewAddress());
  for (int i = 0; i < kMaxPss; ++i) ps.push_back(network->NewAddress());
}

SimCrew::SimCrew(const Surroundings& surroundings, int life, uint64_t generation,
                 const JobConfig& job, std::unique_ptr<SimProcess> coordinator)
    : surroundings_(surroundings), life_(life), generation_(generation), job_(job) {
  processes_.push_back(std::move(coordinator));
}

void SimCrew::Add(Role role, int index, Duties duties) {
  Seat& seat = seats_[{role, index}];
  processes_.push_back(std::make_unique<SimProcess>(
      surroundings_.loop, life_, absl::StrCat(NameOf(role), " ", index, " of life ", life_)));
  seat.process = processes_.back().get();
  SimMember::Options options;
  Member* member = options.registration.mutable_member();
  member->set_role(role);
  member->set_index(index);
  member->set_address("simulated");
  const int incarnation = life_ * 1000 + static_cast<int>(role) * 100 + index;
  member->set_pid(incarnation);
  options.registration.set_incarnation(incarnation);
  if (surroundings_.in_pods) {
    options.registration.set_holder(PodOf(role, index));
  }
  options.process = seat.process;
  options.coordinator = ConnectToCoordinator(seat.process);
  options.starting_period_ms = kStartingHeartbeatMs;
  seat.disk = surroundings_.planting->DiskOf(role, surroundings_.disk->Mount(seat.process));
  seat.kill_points = std::make_unique<KillPoints>(job_, index, generation_,
                                                  [process = seat.process] { process->Kill(); });
  SimMember::Events events;
  events.registered = [this, &seat, load = std::move(duties.load)](const RegisterAnswer& answer) {
    OnRegistered(&seat, answer, load);
  };
  events.joined = [this, &seat, begin = std::move(duties.begin)] {
    if (seat.begin.envelope().generation() == generation_) begin();
  };
  events.wished = std::move(duties.wished);
  events.exited = [this](Exit exit, const std::string& why) {
    if (!doomed_ && !exited_.has_value()) exited_ = Exited{exit, why};
  };
  seat.member = std::make_unique<SimMember>(options, std::move(events));
}

void SimCrew::OnRegistered(Seat* seat, const RegisterAnswer& answer,
                           const std::function<void()>& load) {
  // A process that had to wait before it got its place has loaded what it needs.
  const bool has_loaded = seat->begin.envelope().generation() == generation_;
  seat->begin = answer;
  // If the generation differs, the next life's coordinator has mistaken this process for one of its
  // own. The process then does nothing but send heartbeats.
  if (answer.envelope().generation() != generation_ || has_loaded) return;
  envelope_ = answer.envelope();
  surroundings_.planting->SetEnvelope(envelope_);
  load();
}

void SimCrew::Start(absl::optional<std::pair<Role, int>> absent) {
  for (const auto& [place, seat] : seats_) {
    if (place != absent) seat.member->Start();
  }
}

void SimCrew::ReportFailure(uint64_t any) {
  const auto member = std::next(seats_.begin(), static_cast<int64_t>(any % seats_.size()));
  const Seat& seat = member->second;
  if (seat.begin.envelope().generation() != generation_) return;
  FailureSinkOf(member->first.first,
                member->first.second)(absl::UnavailableError("a peer is away"));
}

void SimCrew::Leave(uint64_t any) {
  std::next(seats_.begin(), static_cast<int64_t>(any % seats_.size()))->second.member->Leave();
}

void SimCrew::StartTwin(const TwinPlan& plan) {
  const auto place = std::next(seats_.begin(), static_cast<int64_t>(plan.member % seats_.size()));
  const auto& [role, index] = place->first;
  SimTwin::Options options;
  options.registration.mutable_member()->set_role(role);
  options.registration.mutable_member()->set_index(index);
  options.registration.mutable_member()->set_address("simulated");
  options.registration.set_incarnation(life_ * 1000 + kTwinIncarnation);
  options.registration.set_holder(plan.in_its_pod ? PodOf(role, index) : "another pod");
  options.life = life_;
  options.starting_period_ms = kStartingHeartbeatMs;
  options.fails = plan.fails;
  options.starts_after_us = plan.starts_after_us;
  options.dies_after_us = plan.dies_after_us;
  twin_ = std::make_unique<SimTwin>(options, place->second.member.get(), surroundings_.loop,
                                    surroundings_.network, surroundings_.addresses->coordinator);
}

void SimCrew::OnBeat(const HeartbeatRequest& beat) {
  const auto seat = seats_.find({beat.role(), static_cast<int>(beat.index())});
  if (seat == seats_.end() || seat->second.member->incarnation() != beat.incarnation()) return;
  silence_.OnBeat(beat.role(), static_cast<int>(beat.index()), surroundings_.loop->NowUs());
}

bool SimCrew::HasBeenSilent() const { return silence_.HasBeen(surroundings_.loop->NowUs()); }

bool SimCrew::has_dead() const {
  for (const auto& process : processes_) {
    if (!process->alive()) return true;
  }
  return false;
}

std::function<void(absl::Status)> SimCrew::FailureSinkOf(Role role, int index) {
  Seat& seat = SeatOf(role, index);
  return [&seat](const absl::Status& status) {
    if (seat.process->alive()) seat.member->Fail(status);
  };
}

rpc::Channel* SimCrew::Connect(SimNetwork::Address to, SimProcess* from) {
  channels_.push_back(surroundings_.network->Connect(to, from));
  return channels_.back().get();
}

uint64_t SimCrew::FirstTransfer() {
  return (static_cast<uint64_t>(life_) << 48) | (++transfer_sequences_ << 24);
}

std::shared_ptr<rpc::ChunkMemory> SimCrew::ChunkMemoryOf(const SimProcess* process) {
  std::shared_ptr<rpc::ChunkMemory>& memory = chunk_memories_[process];
  if (memory == nullptr) {
    memory = std::make_shared<rpc::ChunkMemory>(kLargestMessageBytes, kTurnUs);
  }
  return memory;
}

rpc::Channel* SimCrew::ConnectToPeer(SimNetwork::Address to, SimProcess* from) {
  if (surroundings_.max_message_bytes == 0) return Connect(to, from);
  rpc::ChunkedChannel::Options options;
  options.limits = {surroundings_.max_message_bytes, kLargestMessageBytes};
  options.memory = ChunkMemoryOf(from);
  options.first_transfer = FirstTransfer();
  options.clock = from;
  std::unique_ptr<rpc::Channel> channel = surroundings_.network->Connect(to, from);
  const Fault& fault = surroundings_.planting->fault();
  if (fault.below_chunks != nullptr) channel = fault.below_chunks(std::move(channel));
  channels_.push_back(std::make_unique<rpc::ChunkedChannel>(std::move(channel), options));
  return channels_.back().get();
}

void SimCrew::Serve(SimNetwork::Address address, SimProcess* process,
                    absl::Span<const rpc::Method> methods, rpc::Handler* handler) {
  if (surroundings_.max_message_bytes > 0) {
    Planting* planting = surroundings_.planting;
    const auto in_chunk = std::make_shared<bool>(false);
    rpc::ChunkedHandler::Options options;
    options.limits = {surroundings_.max_message_bytes, kLargestMessageBytes};
    options.envelope = envelope_;
    options.name = process->name();
    options.memory = ChunkMemoryOf(process);
    options.answer_bytes = kLargestMessageBytes;
    options.deadline_us = planting->fault().chunks_kept ? kNever : kChunkDeadlineUs;
    options.first_transfer = FirstTransfer();
    handler = planting->AfterChunks(handler, in_chunk);
    handler = Keep(std::make_unique<rpc::ChunkedHandler>(handler, methods, process, options));
    handler = planting->BeforeChunks(handler, in_chunk);
  }
  surroundings_.network->Listen(address, process, handler);
}

std::vector<rpc::Channel*> SimCrew::ConnectToWorkers(SimProcess* from) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < job_.embedding_worker().replicas(); ++i) {
    channels.push_back(ConnectToPeer(surroundings_.addresses->workers[i], from));
  }
  return channels;
}

std::vector<rpc::Channel*> SimCrew::ConnectToPs(SimProcess* from) {
  std::vector<rpc::Channel*> channels;
  for (int i = 0; i < job_.embedding_ps().replicas(); ++i) {
    channels.push_back(ConnectToPeer(surroundings_.addresses->ps[i], from));
  }
  return channels;
}

rpc::Channel* SimCrew::ConnectToCoordinator(SimProcess* from) {
  return Connect(surroundings_.addresses->coordinator, from);
}

rpc::Handler* SimCrew::Keep(std::unique_ptr<rpc::Handler> handler) {
  handlers_.push_back(std::move(handler));
  return handlers_.back().get();
}

}  // namespace satrap::simulation
