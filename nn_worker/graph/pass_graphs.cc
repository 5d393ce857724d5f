#include "nn_worker/graph/pass_graphs.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace satrap {

PassGraphs::Passes* PassGraphs::Find(const PassKey& key) {
  for (Passes& passes : passes_) {
    if (passes.key == key) return &passes;
  }
  if (passes_.size() == kMaxKeys) return nullptr;
  passes_.push_back({key, -1, nullptr});
  return &passes_.back();
}

void PassGraphs::Refuse(const absl::Status& error) {
  enabled_ = false;
  if (on_refusal_ == nullptr) return;
  on_refusal_(absl::Status(
      error.code(),
      absl::StrCat("the device refuses to capture a training pass, so each kernel is "
                   "enqueued from now on, which takes the host longer: ",
                   error.message(), "; nn_worker.graph_capture=false does so from the start")));
}

absl::Status PassGraphs::DeviceStatus() {
  ASSIGN_OR_RETURN(const std::unique_ptr<BackendEvent> event, memory_->NewEvent());
  return memory_->Poll(event.get()).status();
}

absl::Status PassGraphs::Run(const PassKey& key, absl::FunctionRef<absl::Status()> pass) {
  if (!active()) return pass();
  Passes* const known = Find(key);
  if (known == nullptr) return pass();
  const int64_t epoch = memory_->GraphEpoch();
  if (known->epoch != epoch) {
    // If this very pass writes lists over, the epoch is another one when it comes again.
    known->graph.reset();
    known->epoch = epoch;
    return pass();
  }
  if (known->graph == nullptr) {
    absl::Status passed;
    auto graph = memory_->Capture([&] { return passed = pass(); });
    RETURN_IF_ERROR(passed);
    if (!graph.ok()) {
      // A device that has failed refuses graphs, too, and would refuse all else.
      RETURN_IF_ERROR(DeviceStatus());
      Refuse(graph.status());
      return pass();
    }
    known->graph = *std::move(graph);
  }
  const ProfilerRange range(memory_, "captured pass");
  memory_->Enqueue(known->graph.get());
  ++launches_;
  return absl::OkStatus();
}

}  // namespace satrap
