#include "tests/simulation/sim_loader.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/base/check.h"
#include "common/role/coordinator_client.h"
#include "common/rpc/header.h"
#include "common/rpc/lost_call.h"
#include "common/rpc/reliable_call.h"
#include "data_loader/engine/split_lease_client.h"
#include "data_loader/source/run_files.h"

namespace satrap::simulation {

SimLoader::SimLoader(int index, const JobConfig& job, SimCrew* crew, Planting* planting,
                     SimLoop* loop)
    : index_(index),
      job_(planting->JobOf(DATA_LOADER, job)),
      crew_(crew),
      planting_(planting),
      loop_(loop),
      seat_(&crew->SeatOf(DATA_LOADER, index)) {}

void SimLoader::Load() {
  const auto listed = ListRunFiles(job_);
  CHECK_OK(listed.status());
  AskForFiles(*listed);
}

void SimLoader::AskForFiles(const SplitList& listed) {
  FixSplitsRequest request;
  *request.mutable_envelope() = crew_->envelope();
  request.set_loader(index_);
  *request.mutable_splits() = listed;
  crew_->ConnectToCoordinator(seat_->process)
      ->Call(
          kFixSplits, rpc::MessageOf(request), SimTimeouts().attempt_timeout_ms,
          [this, listed](const absl::StatusOr<rpc::Message>& answer) { OnFiles(listed, answer); });
}

void SimLoader::OnFiles(const SplitList& listed, const absl::StatusOr<rpc::Message>& answer) {
  if (rpc::IsLost(answer.status())) return AskForFiles(listed);
  if (!answer.ok()) return crew_->FailureSinkOf(DATA_LOADER, index_)(answer.status());
  FixSplitsAnswer fixed;
  CHECK(fixed.ParseFromString(answer->header));
  Open(fixed.splits());
}

void SimLoader::Open(const SplitList& fixed) {
  LoaderStreams::Begin begin;
  begin.generation = crew_->envelope().generation();
  begin.position = planting_->PositionOf(DATA_LOADER, seat_->begin.position());
  begin.ledger = planting_->LedgerOf(DATA_LOADER, seat_->begin.ledger());
  begin.fix_files = [&fixed](const SplitList&) { return fixed; };
  JobConfig job = job_;
  job.clear_run_dir();  // the run is on the simulated disk, and quarantine files are not checked
  auto streams = LoaderStreams::Make(
      job, index_, [](const std::string&) {}, begin);
  if (!streams.ok()) return crew_->FailureSinkOf(DATA_LOADER, index_)(streams.status());
  streams_ = *std::move(streams);
  seat_->member->Ready();
}

void SimLoader::Begin() {
  SimProcess* process = seat_->process;
  SplitLeaseClient::Options lease;
  lease.envelope = crew_->envelope();
  lease.loader_index = index_;
  lease.num_splits = streams_->num_train_splits();
  lease.timeouts = SimTimeouts();
  leases_ =
      std::make_unique<SplitLeaseClient>(lease, process, crew_->ConnectToCoordinator(process));
  streams_->MakeSources(process, leases_.get());
  LoaderEngine::Options options;
  options.loader_index = index_;
  options.envelope = crew_->envelope();
  options.timeouts = SimTimeouts();
  options.max_open_parts = 1 + loop_->random()->Below(4);
  options.kill_points = seat_->kill_points.get();
  engine_ = std::make_unique<LoaderEngine>(options, planting_->SourcesOf(streams_->sources()),
                                           crew_->ConnectToWorkers(process), process,
                                           crew_->FailureSinkOf(DATA_LOADER, index_));
  engine_->Start();
}

}  // namespace satrap::simulation
