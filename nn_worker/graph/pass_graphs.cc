#include "nn_worker/graph/pass_graphs.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {

PassGraphs::Passes* PassGraphs::Find(const PassKey& key) {
  for (Passes& passes : passes_) {
    if (passes.key == key) return &passes;
  }
  if (passes_.size() == kMaxKeys) return nullptr;
  passes_.push_back({key, -1, {}});
  return &passes_.back();
}

void PassGraphs::Refuse(const absl::Status& error) {
  enabled_ = false;
  if (on_refusal_ == nullptr) return;
  on_refusal_(absl::Status(
      error.code(),
      absl::StrCat("the device refuses to capture a training pass, so from now on kernels are "
                   "enqueued one by one, which takes the host longer: ",
                   error.message(),
                   ". To do so from the start, set nn_worker.graph_capture=false")));
}

absl::Status PassGraphs::DeviceStatus() {
  ASSIGN_OR_RETURN(const std::unique_ptr<BackendEvent> event, memory_->NewEvent());
  return memory_->Poll(event.get()).status();
}

absl::Status PassGraphs::RunCaptured(const PassPart& part, std::unique_ptr<OperationGraph>* graph) {
  if (*graph == nullptr) {
    absl::Status passed;
    auto captured = memory_->Capture([&] { return passed = part.enqueue(); });
    RETURN_IF_ERROR(passed);
    if (!captured.ok()) {
      // A device that has failed refuses every operation, not only graphs.
      RETURN_IF_ERROR(DeviceStatus());
      Refuse(captured.status());
      return part.enqueue();
    }
    *graph = *std::move(captured);
  }
  const ProfilerRange range(memory_, "captured pass");
  memory_->Enqueue(graph->get());
  ++launches_;
  return absl::OkStatus();
}

absl::Status PassGraphs::Run(const PassKey& key, absl::Span<const PassPart> parts) {
  Passes* const known = active() ? Find(key) : nullptr;
  bool from_graphs = known != nullptr;
  if (known != nullptr && known->epoch != memory_->GraphEpoch()) {
    // This pass may itself overwrite lists. Then the epoch has changed again when the next pass
    // with this key comes.
    known->graphs.clear();
    known->graphs.resize(parts.size());
    known->epoch = memory_->GraphEpoch();
    from_graphs = false;
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    // After the device has refused a graph, no graphs are used. The epoch is checked before each
    // part, because a part that is not captured may overwrite lists, and this changes the epoch.
    if (from_graphs && parts[i].captured && enabled_ && memory_->GraphEpoch() == known->epoch) {
      RETURN_IF_ERROR(RunCaptured(parts[i], &known->graphs[i]));
    } else {
      RETURN_IF_ERROR(parts[i].enqueue());
    }
  }
  return absl::OkStatus();
}

}  // namespace satrap
