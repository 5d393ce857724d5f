// Faults at the boundary between two lives of a run, and faults of its list of members: handlers
// in front of an engine that accept messages which processes of an earlier life have sent, or that
// leave something out of what they tell members.

#include <set>
#include <utility>

#include "common/rpc/hot_methods.h"
#include "proto/control.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

// The envelope is field 1 of each request that has one. If a field comes twice, the later one
// counts, so the forged envelope is appended.
void Forge(const Envelope& envelope, rpc::Message* request) {
  AckHeader forged;
  *forged.mutable_envelope() = envelope;
  request->header += forged.SerializeAsString();
}

// Gives every request the envelope of this life, whatever envelope the request had.
class ForgedEnvelopes final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    Forge(*site_.envelope, &request);
    Pass(method, std::move(request), std::move(respond));
  }
};

// Gives every LeaseSplit the envelope of this life. After a loader's first LeaseSplit of a life,
// sends the last LeaseSplit of the previous life once more, as the network may do.
class ForgedLeases final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kLeaseSplit) {
      Remember(request);
      Forge(*site_.envelope, &request);
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  void Remember(const rpc::Message& request) {
    const auto lease = HeaderOf<LeaseSplitRequest>(request);
    const uint64_t generation = lease.envelope().generation();
    if (generation != site_.envelope->generation()) return;
    LifeMemory::Lease& last = site_.memory->leases[lease.call().sender()];
    if (last.generation > 0 && last.generation < generation) {
      Forge(*site_.envelope, &last.request);
      site_.loop->Post(
          [this, late = last.request] { Pass(kLeaseSplit, late, [](const auto&) {}); });
    }
    last = {generation, request};
  }
};

// Answers DONE to Updates that an earlier life has already had. Numbers begin at 1 in each
// generation, so new Updates are mistaken for repeated ones.
class KeptWindow final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kUpdate) {
      const auto update = HeaderOf<UpdateHeader>(request);
      const std::pair<uint32_t, uint64_t> id(update.call().sender(), update.call().number());
      auto& window = site_.memory->windows[site_.index];
      if (own_.count(id) == 0 && !window.insert(id).second) return respond(DoneMessage());
      own_.insert(id);
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::set<std::pair<uint32_t, uint64_t>> own_;  // of this generation
};

// Sends the list of members to each process in one answer only, whether or not that answer arrives.
class MembersToldOnce final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    HeartbeatRequest beat;
    if (!(method == kHeartbeat) || !beat.ParseFromString(request.header)) {
      return Pass(method, std::move(request), std::move(respond));
    }
    Pass(method, std::move(request),
         [this, sender = beat.incarnation(),
          respond = std::move(respond)](absl::StatusOr<rpc::Message> answer) mutable {
           HeartbeatAnswer told;
           if (answer.ok() && told.ParseFromString(answer->header) && told.members_size() > 0 &&
               !told_.insert(sender).second) {
             told.clear_members();
             answer->header = told.SerializeAsString();
           }
           respond(std::move(answer));
         });
  }

 private:
  std::set<uint64_t> told_;  // incarnations
};

// Ends the first call of Register of each process with CANCELLED, as gRPC itself does if the other
// side ends a call. A channel should return UNAVAILABLE instead (common/rpc/grpc_channel.h).
class EndedRegistrations final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    RegisterRequest registration;
    if (method == kRegister && registration.ParseFromString(request.header) &&
        ended_.insert(registration.incarnation()).second) {
      return respond(absl::CancelledError("the server goes down"));
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::set<uint64_t> ended_;  // incarnations
};

}  // namespace

std::vector<Fault> LifeFaults() {
  return {
      {.says = "the coordinator tells each member of the others once, heard or not",
       .before_coordinator = Before<MembersToldOnce>()},
      {.says = "a call that the other side has ended counts as given up on this side",
       .before_coordinator = Before<EndedRegistrations>()},
      {.says = "a PS takes calls of an earlier life",
       .with_deaths = true,
       .before_ps = Before<ForgedEnvelopes>()},
      {.says = "an embedding worker takes calls of an earlier life",
       .with_deaths = true,
       .before_worker = Before<ForgedEnvelopes>()},
      {.says = "the coordinator leases splits to an earlier life",
       .worlds = Fault::kHybrid,
       .with_deaths = true,
       .before_coordinator = Before<ForgedLeases>()},
      {.says = "windows of calls are kept over a generation",
       .with_deaths = true,
       .before_ps = Before<KeptWindow>()},
  };
}

}  // namespace satrap::simulation
