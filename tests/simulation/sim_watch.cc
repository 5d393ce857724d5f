#include "tests/simulation/sim_watch.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/rpc/hot_methods.h"

namespace satrap::simulation {

void PutBatchWatch::Handle(const rpc::Method& method, rpc::Message request, rpc::Callback respond) {
  if (method == rpc::kPutBatch) {
    PutBatchHeader header;
    CHECK(header.ParseFromString(request.header));
    uint32_t& last = (*last_epochs_)[header.stream()];
    last = std::max(last, header.epoch());
  }
  worker_->Handle(method, std::move(request), std::move(respond));
}

}  // namespace satrap::simulation
