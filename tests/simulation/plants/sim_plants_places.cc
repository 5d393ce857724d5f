// Faults of the places of members and of coordinators: twins that are not distinguished, and
// failures of processes that are not members.

#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/role/coordinator_client.h"
#include "proto/control.pb.h"
#include "tests/simulation/plants/sim_plants_messages.h"

namespace satrap::simulation {
namespace {

using Place = std::pair<Role, uint32_t>;

// Attributes each failure to the process that was heard first at its index.
class FailuresOfAnybody final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kHeartbeat) {
      const auto beat = HeaderOf<HeartbeatRequest>(request);
      members_.emplace(Place(beat.role(), beat.index()), beat.incarnation());
    } else if (method == kFail) {
      EditHeader<FailRequest>(&request, [this](FailRequest* failure) {
        const auto member = members_.find({failure->role(), failure->index()});
        if (member != members_.end()) failure->set_incarnation(member->second);
      });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<Place, uint64_t> members_;  // incarnations
};

// Treats all processes of an index as processes of one pod.
void ForgetHolder(const Site&, RegisterRequest* request) { request->clear_holder(); }

// Distinguishes pods only after a member was heard: until then every process that registers gets
// the holder of the first one.
class TwinsAtRegister final : public PlantedHandler {
 public:
  using PlantedHandler::PlantedHandler;
  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == kHeartbeat) {
      const auto beat = HeaderOf<HeartbeatRequest>(request);
      heard_.insert({beat.role(), beat.index()});
    } else if (method == kRegister) {
      EditHeader<RegisterRequest>(&request, [this](RegisterRequest* registration) {
        const Place place(registration->member().role(), registration->member().index());
        const auto first = holders_.emplace(place, registration->holder()).first;
        if (heard_.count(place) == 0) registration->set_holder(first->second);
      });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  std::map<Place, std::string> holders_;
  std::set<Place> heard_;
};

void ClaimUnasked(const RunLog&, bool is_stale, ClaimRequest* request) {
  if (is_stale) request->is_asked = true;
}

// As if each generation had begun just now, whatever the log says.
void CountAnew(const RunLog&, bool, ClaimRequest* request) { request->unix_ms = int64_t{1} << 50; }

}  // namespace

std::vector<Fault> PlaceFaults() {
  std::vector<Fault> faults = {
      {.says = "the failure of a process that is no member counts",
       .before_coordinator = Before<FailuresOfAnybody>()},
      {.says = "a spare fights for the place of a member that is heard",
       .before_coordinator = Before<Editor<RegisterRequest>>(kRegister, ForgetHolder)},
      {.says = "twins are told apart when they register, and not when they are heard",
       .before_coordinator = Before<TwinsAtRegister>()},
      {.says = "coordinators of two pods take the run from each other", .claim = ClaimUnasked},
      {.says = "the time without all members begins anew with each generation", .claim = CountAnew},
  };
  for (Fault& fault : faults) fault.with_deaths = true;
  return faults;
}

}  // namespace satrap::simulation
