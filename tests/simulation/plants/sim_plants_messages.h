// Handlers and channels that sit between two engines and break one promise. None owns the engine or
// channel that it is given.
//
// Not thread-safe: they live on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/rpc/rpc.h"
#include "proto/hot.pb.h"
#include "tests/simulation/machine/sim_loop.h"

namespace satrap::simulation {

// Larger than every number that an engine assigns.
inline constexpr uint64_t kFirstPlantedNumber = uint64_t{1} << 40;
// The answer to a call that only asks for something to be done.
rpc::Message DoneMessage();
// Sets the number of a request, of any method that numbers its calls. Numbers of earlier calls stay
// open.
void GiveNewNumber(const rpc::Method& method, rpc::Message* request, uint64_t number);

inline constexpr rpc::Method kRegisterMethod = {"/satrap.Coordinator/Register", false};
inline constexpr rpc::Method kHeartbeatMethod = {"/satrap.Coordinator/Heartbeat", false};
inline constexpr rpc::Method kLeaseSplitMethod = {"/satrap.Coordinator/LeaseSplit", false};

// Changes the header of each request of one method.
template <typename Header>
class Editor final : public rpc::Handler {
 public:
  Editor(rpc::Handler* engine, const rpc::Method& method, std::function<void(Header*)> edit)
      : engine_(engine), method_(method), edit_(std::move(edit)) {}

  void Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) override {
    if (method == method_) {
      Header header;
      CHECK(header.ParseFromString(request.header));
      edit_(&header);
      request.header = header.SerializeAsString();
    }
    engine_->Handle(method, std::move(request), std::move(respond));
  }

 private:
  rpc::Handler* const engine_;
  const rpc::Method method_;
  const std::function<void(Header*)> edit_;
};
template <typename Header>
std::unique_ptr<rpc::Handler> NewEditor(rpc::Handler* engine, const rpc::Method& method,
                                        std::function<void(Header*)> edit) {
  return std::make_unique<Editor<Header>>(engine, method, std::move(edit));
}

// Gives every attempt of a call of `method` a number of its own.
std::unique_ptr<rpc::Handler> NewForgetfulWindow(rpc::Handler* engine, const rpc::Method& method);

// If the sender has closed a call, gives a late attempt of it a new number, whatever its method.
std::unique_ptr<rpc::Handler> NewClosedCallsRun(rpc::Handler* engine);

// Answers the calls of `method` with DONE and does nothing.
std::unique_ptr<rpc::Handler> NewSwallower(rpc::Handler* engine, const rpc::Method& method);

// Answers the calls of `method`, which ranks have numbered, at once, but passes them to the PS up
// to 20 ms later.
std::unique_ptr<rpc::Handler> NewEarlyAnswers(rpc::Handler* ps, const rpc::Method& method,
                                              SimLoop* loop);

// After a Lookup, updates its keys of table "rows" with zeros, which creates their rows. Unordered
// worlds only.
std::unique_ptr<rpc::Handler> NewRowCreatingLookup(rpc::Handler* ps, int ranks);

// After LoadTables, creates again the rows that were updated since its BeginCut. Unordered worlds
// only.
std::unique_ptr<rpc::Handler> NewLaterRowsKept(rpc::Handler* ps, int ranks);

// Changes every key of Lookup and Update to another one, a bijection that keeps the partition.
std::unique_ptr<rpc::Handler> NewOtherKeys(rpc::Handler* ps);

// Mistakes the first loader's end of an epoch for the end of all.
std::unique_ptr<rpc::Handler> NewEarlyEpochEnds(rpc::Handler* worker, int loaders);

// A rank's channels, by embedding worker, that deliver its pushes reliably but answer them wrongly:
// each at once, or, if `out_of_order`, the oldest open push whenever any push is answered.
std::vector<std::unique_ptr<rpc::Channel>> NewMisansweredPushes(
    const std::vector<rpc::Channel*>& channels, bool out_of_order, SimLoop* loop);

// A rank's channels that ask for another rank's part of each ordered step.
std::vector<std::unique_ptr<rpc::Channel>> NewOtherPartRequests(
    const std::vector<rpc::Channel*>& channels, int part);

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANTS_MESSAGES_H_
