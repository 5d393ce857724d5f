#include "tests/simulation/plants/sim_plants_lives.h"

#include <set>
#include <string>
#include <utility>

#include "common/base/check.h"
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

class ForgedEnvelopes final : public rpc::Handler {
 public:
  ForgedEnvelopes(rpc::Handler* engine, const Envelope* envelope)
      : engine_(engine), envelope_(envelope) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    Forge(*envelope_, &request);
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  const Envelope* const envelope_;
};

class ForgedLeases final : public rpc::Handler {
 public:
  ForgedLeases(rpc::Handler* coordinator, const Envelope* envelope, LifeMemory* memory,
               SimLoop* loop)
      : coordinator_(coordinator), envelope_(envelope), memory_(memory), loop_(loop) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kLeaseSplitMethod) {
      Remember(request);
      Forge(*envelope_, &request);
    }
    coordinator_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  void Remember(const rpc::Message& request) {
    LeaseSplitRequest lease;
    CHECK(lease.ParseFromString(request.header));
    const uint64_t generation = lease.envelope().generation();
    if (generation != envelope_->generation()) return;
    LifeMemory::Lease& last = memory_->leases[lease.call().sender()];
    if (last.generation > 0 && last.generation < generation) {
      Forge(*envelope_, &last.request);
      loop_->Post([this, late = last.request] {
        coordinator_->Handle(kLeaseSplitMethod, late, [](const auto&) {});
      });
    }
    last = {generation, request};
  }

  rpc::Handler* const coordinator_;
  const Envelope* const envelope_;
  LifeMemory* const memory_;
  SimLoop* const loop_;
};

class KeptWindow final : public rpc::Handler {
 public:
  KeptWindow(rpc::Handler* ps, std::set<std::pair<uint32_t, uint64_t>>* window)
      : ps_(ps), window_(window) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == rpc::kUpdate) {
      UpdateHeader update;
      CHECK(update.ParseFromString(request.header));
      const std::pair<uint32_t, uint64_t> id(update.call().sender(), update.call().number());
      if (own_.count(id) == 0 && !window_->insert(id).second) return respond(DoneMessage());
      own_.insert(id);
    }
    ps_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const ps_;
  std::set<std::pair<uint32_t, uint64_t>>* const window_;
  std::set<std::pair<uint32_t, uint64_t>> own_;  // of this generation
};

class MembersToldOnce final : public rpc::Handler {
 public:
  explicit MembersToldOnce(rpc::Handler* coordinator) : coordinator_(coordinator) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    HeartbeatRequest beat;
    if (!(method == kHeartbeatMethod) || !beat.ParseFromString(request.header)) {
      return coordinator_->Handle(method, std::move(request), std::move(respond));
    }
    coordinator_->Handle(method, std::move(request),
                         [this, sender = beat.incarnation(), respond = std::move(respond)](
                             absl::StatusOr<rpc::Message> answer) mutable {
                           HeartbeatAnswer told;
                           if (answer.ok() && told.ParseFromString(answer->header) &&
                               told.members_size() > 0 && !told_.insert(sender).second) {
                             told.clear_members();
                             answer->header = told.SerializeAsString();
                           }
                           respond(std::move(answer));
                         });
  }

 private:
  rpc::Handler* const coordinator_;
  std::set<uint64_t> told_;  // incarnations
};

class EndedRegistrations final : public rpc::Handler {
 public:
  explicit EndedRegistrations(rpc::Handler* coordinator) : coordinator_(coordinator) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    RegisterRequest registration;
    if (method == kRegisterMethod && registration.ParseFromString(request.header) &&
        ended_.insert(registration.incarnation()).second) {
      return respond(absl::CancelledError("the server goes down"));
    }
    coordinator_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const coordinator_;
  std::set<uint64_t> ended_;  // incarnations
};

}  // namespace

std::unique_ptr<rpc::Handler> NewForgedEnvelopes(rpc::Handler* engine, const Envelope* envelope) {
  return std::make_unique<ForgedEnvelopes>(engine, envelope);
}

std::unique_ptr<rpc::Handler> NewForgedLeases(rpc::Handler* coordinator, const Envelope* envelope,
                                              LifeMemory* memory, SimLoop* loop) {
  return std::make_unique<ForgedLeases>(coordinator, envelope, memory, loop);
}

std::unique_ptr<rpc::Handler> NewKeptWindow(rpc::Handler* ps,
                                            std::set<std::pair<uint32_t, uint64_t>>* window) {
  return std::make_unique<KeptWindow>(ps, window);
}

std::unique_ptr<rpc::Handler> NewMembersToldOnce(rpc::Handler* coordinator) {
  return std::make_unique<MembersToldOnce>(coordinator);
}

std::unique_ptr<rpc::Handler> NewEndedRegistrations(rpc::Handler* coordinator) {
  return std::make_unique<EndedRegistrations>(coordinator);
}

}  // namespace satrap::simulation
