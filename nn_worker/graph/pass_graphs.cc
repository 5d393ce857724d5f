#include "nn_worker/graph/pass_graphs.h"

#include "common/base/status_macros.h"

namespace satrap {

absl::Status PassGraphs::Run(const std::string& key, absl::FunctionRef<absl::Status()> pass) {
  const int64_t epoch = memory_->GraphEpoch();
  if (!enabled_ || epoch < 0) return pass();
  if (passes_.size() == kMaxKeys && passes_.count(key) == 0) return pass();
  Passes& known = passes_[key];
  if (known.epoch != epoch) {
    // If this very pass writes lists over, the epoch is another one when it comes again.
    known.graph.reset();
    known.epoch = epoch;
    return pass();
  }
  if (known.graph == nullptr) {
    ASSIGN_OR_RETURN(known.graph, memory_->Capture(pass));
  }
  memory_->Enqueue(known.graph.get());
  ++launches_;
  return absl::OkStatus();
}

}  // namespace satrap
