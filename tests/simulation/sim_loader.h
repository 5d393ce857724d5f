// A data loader of a life. The coordinator fixes its list of files; then it runs its engine over
// them. The files are real.
//
// Not thread-safe: it lives on the SimLoop's thread.

#ifndef SATRAP_TESTS_SIMULATION_SIM_LOADER_H_
#define SATRAP_TESTS_SIMULATION_SIM_LOADER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/rpc.h"
#include "data_loader/engine/loader_engine.h"
#include "data_loader/engine/split_supply.h"
#include "data_loader/loader_streams.h"
#include "proto/control.pb.h"
#include "proto/job.pb.h"
#include "tests/simulation/machine/sim_loop.h"
#include "tests/simulation/plants/sim_plants.h"
#include "tests/simulation/sim_crew.h"

namespace satrap::simulation {

class SimLoader {
 public:
  // The loader is the member DATA_LOADER `index` of `crew`. REQUIRES: this member has been added to
  // `crew`. Nothing is owned. Everything must outlive the loader, and the loader must outlive the
  // loop's tasks.
  SimLoader(int index, const JobConfig& job, SimCrew* crew, Planting* planting, SimLoop* loop);

  // Call when the loader has registered: lists its files, asks the coordinator to fix the list, and
  // reports that the loader is ready.
  void Load();
  // Call when all members are ready.
  void Begin();

 private:
  void AskForFiles(const SplitList& listed);
  void OnFiles(const SplitList& listed, const absl::StatusOr<rpc::Message>& answer);
  void Open(const SplitList& fixed);

  const int index_;
  const JobConfig job_;
  SimCrew* const crew_;
  Planting* const planting_;
  SimLoop* const loop_;
  SimCrew::Seat* const seat_;
  std::unique_ptr<SplitSupply> leases_;
  std::unique_ptr<LoaderStreams> streams_;
  std::unique_ptr<LoaderEngine> engine_;
};

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_SIM_LOADER_H_
