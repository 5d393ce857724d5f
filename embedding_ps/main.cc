// The process of an embedding PS. It creates its tables, fills them with the rows of the cut that
// the generation begins from, and serves them until the coordinator ends the run.

#include <memory>
#include <string>
#include <utility>

#include "absl/types/optional.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/start_cut.h"
#include "common/metrics/refresh.h"
#include "common/role/process_end.h"
#include "common/role/role_runtime.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/thread/mutex.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/ps_metrics.h"

namespace satrap {
namespace {

constexpr rpc::Method kMethods[] = {rpc::kLookup,     rpc::kUpdate,    rpc::kApplyStep,
                                    rpc::kBeginCut,   rpc::kAwaitCut,  rpc::kAbandonCut,
                                    rpc::kLoadTables, rpc::kTableStats};

// Niceness of the threads that write cuts, so that the threads that serve calls have priority.
constexpr int kDiskNiceness = 10;

// Loads the rows of the cut and waits until the load has ended. Heartbeats continue meanwhile.
absl::Status LoadCut(const std::string& folder, PsEngine* engine) {
  Mutex mutex;
  CondVar ended;
  absl::optional<absl::Status> status;
  engine->Load(folder, [&](absl::Status result) {
    MutexLock lock(&mutex);
    status = std::move(result);
    ended.NotifyAll();
  });
  MutexLock lock(&mutex);
  while (!status.has_value()) ended.Wait(&mutex);
  return MarkAsStartCutError(*status);
}

absl::Status RunEmbeddingPs(RoleRuntime& runtime) {
  // Writing a cut and loading one both wait for the disk. So each has its own threads, as many as
  // there are for calls.
  ThreadPoolExecutor disk_executor(runtime.job().embedding_ps().threads(), kDiskNiceness);
  // All roles wait for a load, so it runs at normal priority.
  ThreadPoolExecutor load_executor(runtime.job().embedding_ps().threads());
  PsEngine::Options options;
  options.envelope = runtime.envelope();
  options.index = runtime.index();
  options.executor = runtime.executor();
  options.disk_executor = &disk_executor;
  options.load_executor = &load_executor;
  options.kill_points = runtime.kill_points();
  options.first_step = runtime.position().step();
  options.frozen_steps = runtime.position().frozen_steps();
  NowDoing("makes its tables");
  ASSIGN_OR_RETURN(const std::unique_ptr<PsEngine> engine,
                   PsEngine::Create(runtime.job(), options));
  // Load and Preload run before Serve, because neither may run at the same time as calls. A cut
  // already contains the preloaded rows.
  if (runtime.cut_folder().empty()) {
    NowDoing("preloads rows");
    engine->Preload();
  } else {
    NowDoing("loads the rows of the cut");
    RETURN_IF_ERROR(LoadCut(runtime.cut_folder(), engine.get()));
    runtime.logger().Info("has loaded the rows of the cut");
  }
  RETURN_IF_ERROR(runtime.Serve(kMethods, engine.get()));
  RETURN_IF_ERROR(runtime.Join());
  RefreshEachSecond(runtime.executor(), [&] { ExportPsMetrics(*engine, runtime.metrics()); });
  runtime.WaitForFinish();
  // A cut or a load may still be in progress. It uses the engine, which is destroyed when this
  // function returns.
  disk_executor.Stop();
  load_executor.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunRole(satrap::EMBEDDING_PS, argc, argv, satrap::RunEmbeddingPs);
}
