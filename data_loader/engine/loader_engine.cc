#include "data_loader/engine/loader_engine.h"

#include <utility>

#include "data_loader/engine/stream_sender.h"

namespace satrap {

LoaderEngine::LoaderEngine(const Options& options, const std::vector<StreamSources>& streams,
                           const std::vector<rpc::Channel*>& workers, Executor* executor,
                           const std::function<void(absl::Status)>& failure) {
  for (const StreamSources& stream : streams) {
    senders_.push_back(std::make_shared<StreamSender>(StreamSender::Options{options, stream},
                                                      executor, workers, stream.sources, failure));
  }
}

LoaderEngine::~LoaderEngine() { Stop(); }

void LoaderEngine::Start() {
  for (const auto& sender : senders_) sender->Start();
}

LoaderEngine::Counts LoaderEngine::counts() const {
  Counts sum;
  for (const auto& sender : senders_) {
    const StreamSender::Counts counts = sender->counts();
    sum.parts += counts.parts;
    sum.samples += counts.samples;
    sum.open_parts += counts.open_parts;
  }
  return sum;
}

void LoaderEngine::Stop() {
  for (const auto& sender : senders_) sender->Stop();
}

}  // namespace satrap
