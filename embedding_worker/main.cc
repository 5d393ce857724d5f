// The process of an embedding worker. It joins the run, connects to the embedding PSs, and serves
// loaders and NN workers.

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/candidates/candidate_list.h"
#include "common/config/candidates.h"
#include "common/metrics/refresh.h"
#include "common/role/process_end.h"
#include "common/role/role_runtime.h"
#include "common/rpc/hot_methods.h"
#include "embedding_worker/embedding_worker_engine.h"
#include "embedding_worker/engine_metrics.h"

namespace satrap {
namespace {

absl::Status RunEmbeddingWorker(RoleRuntime& runtime) {
  // Join before serving, because the engine needs channels to all PSs. Loaders and NN workers may
  // join earlier: their calls wait until this server listens.
  RETURN_IF_ERROR(runtime.Join());
  EmbeddingWorkerEngine::Options options;
  options.envelope = runtime.envelope();
  options.index = runtime.index();
  options.executor = runtime.executor();
  options.position = runtime.position();
  options.kill_points = runtime.kill_points();
  options.on_failure = runtime.failure_sink();
  // The list exists, because a loader made it before it joined.
  if (NeedsCandidateList(runtime.job())) {
    ASSIGN_OR_RETURN(options.candidates, ReadCandidateList(CandidateListPath(runtime.job())));
  }
  for (int ps = 0; ps < runtime.job().embedding_ps().replicas(); ++ps) {
    options.ps.push_back(runtime.ChannelTo(EMBEDDING_PS, ps));
  }
  NowDoing("makes its queues");
  ASSIGN_OR_RETURN(std::unique_ptr<EmbeddingWorkerEngine> engine,
                   EmbeddingWorkerEngine::Create(runtime.job(), std::move(options)));
  RETURN_IF_ERROR(runtime.Serve(rpc::kEmbeddingWorkerMethods, engine.get()));
  NowDoing("takes part in the run");
  RefreshEachSecond(runtime.executor(), [&] { ExportEngineMetrics(*engine, runtime.metrics()); });
  runtime.WaitForFinish();
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunRole(satrap::EMBEDDING_WORKER, argc, argv, satrap::RunEmbeddingWorker);
}
