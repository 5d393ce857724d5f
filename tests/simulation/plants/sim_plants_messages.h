// Building blocks for plants of messages between two engines.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"
#include "tests/simulation/plants/sim_fault.h"

namespace satrap::simulation {

// This number is larger than every number that an engine assigns.
inline constexpr uint64_t kFirstPlantedNumber = uint64_t{1} << 40;

// The answer to a call that only has to be confirmed.
rpc::Message DoneMessage();
// CHECK-fails for an error. If the engine refused a planted call, the plant would break a promise
// other than the one that it is meant to break.
void ExpectNoError(const absl::StatusOr<rpc::Message>& answer);
// Parses the header of a request. REQUIRES: it is a Header
template <typename Header>
Header HeaderOf(const rpc::Message& request) {
  Header header;
  CHECK(header.ParseFromString(request.header));
  return header;
}
template <typename Header>
void EditHeader(rpc::Message* request, const std::function<void(Header*)>& edit) {
  Header header = HeaderOf<Header>(*request);
  edit(&header);
  request->header = header.SerializeAsString();
}
// Changes the CallId of a request of PutBatch, NextBatch, PushGradients, Ack, Update, ApplyStep or
// LeaseSplit. Leaves requests of other methods as they are. Calls without a stream count as calls
// of TRAIN_STREAM.
void EditCall(const rpc::Method& method, rpc::Message* request,
              const std::function<void(int stream, CallId*)>& edit);
// Renumber gives a request a new number, for any method that numbers its calls. SetCall sets all
// three fields. Numbers of earlier calls stay open.
void Renumber(CallId* call, uint64_t number);
void SetCall(CallId* call, uint32_t sender, uint64_t number);

// A handler that breaks one promise. A subclass passes on all calls that it does not change.
class PlantedHandler : public rpc::Handler {
 public:
  PlantedHandler(const Site& site, rpc::Handler* next) : site_(site), next_(next) {}

 protected:
  void Pass(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
    next_->Handle(method, std::move(request), std::move(respond));
  }
  // Passes a call on after a delay of up to `latest_us`.
  void PassLate(int64_t latest_us, const rpc::Method& method, rpc::Message request,
                rpc::Callback respond) {
    PassAfter(static_cast<int64_t>(site_.loop->random()->Below(latest_us)), method,
              std::move(request), std::move(respond));
  }
  void PassAfter(int64_t delay_us, const rpc::Method& method, rpc::Message request,
                 rpc::Callback respond) {
    site_.loop->PostAfter(delay_us, [this, method, request = std::move(request),
                                     respond = std::move(respond)]() mutable {
      Pass(method, std::move(request), std::move(respond));
    });
  }

  const Site site_;
  rpc::Handler* const next_;
};
template <typename Planted, typename... Arguments>
HandlerHook Before(Arguments... arguments) {
  return [=](const Site& site, rpc::Handler* next) {
    return std::make_unique<Planted>(site, next, arguments...);
  };
}
// Plants `hook` before the last process of a role only.
HandlerHook AtLast(HandlerHook hook);

// Changes the header of each request of one method.
template <typename Header>
class Editor final : public PlantedHandler {
 public:
  using Edit = std::function<void(const Site&, Header*)>;
  Editor(const Site& site, rpc::Handler* next, const rpc::Method& method, Edit edit)
      : PlantedHandler(site, next), method_(method), edit_(std::move(edit)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) {
      EditHeader<Header>(&request, [this](Header* header) { edit_(site_, header); });
    }
    Pass(method, std::move(request), std::move(respond));
  }

 private:
  const rpc::Method method_;
  const Edit edit_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_
