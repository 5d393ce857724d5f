// The process of an embedding PS: creates its tables, serves them, and takes part in the run until
// the coordinator ends it.

#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "common/metrics/refresh.h"
#include "common/role/role_runtime.h"
#include "common/rpc/control_methods.h"
#include "common/rpc/hot_methods.h"
#include "common/thread/thread_pool_executor.h"
#include "embedding_ps/ps_engine.h"
#include "embedding_ps/ps_metrics.h"

namespace satrap {
namespace {

constexpr rpc::Method kMethods[] = {rpc::kLookup, rpc::kUpdate, rpc::kSaveTables, rpc::kLoadTables,
                                    rpc::kTableStats};

absl::Status RunEmbeddingPs(RoleRuntime& runtime) {
  // Saves and loads block on files, so they get a thread of their own. One runs at a time.
  ThreadPoolExecutor disk_executor(1);
  PsEngine::Options options;
  options.envelope = runtime.envelope();
  options.index = runtime.index();
  options.executor = runtime.executor();
  options.disk_executor = &disk_executor;
  ASSIGN_OR_RETURN(const std::unique_ptr<PsEngine> engine,
                   PsEngine::Create(runtime.job(), options));
  // Before Serve: Preload must not run beside calls.
  engine->Preload();
  RETURN_IF_ERROR(runtime.Serve({{kMethods, engine.get()}}));
  RETURN_IF_ERROR(runtime.Join());
  PsMetrics metrics(engine.get(), runtime.metrics());
  RefreshEachSecond(runtime.executor(), [&metrics] { metrics.Refresh(); });
  runtime.WaitForFinish();
  // A save or load may still be running; it uses the engine, which is destroyed at the return.
  disk_executor.Stop();
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  return satrap::RunRole(satrap::EMBEDDING_PS, argc, argv, satrap::RunEmbeddingPs);
}
