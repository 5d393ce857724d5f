#include "data_loader/engine/loader_engine.h"

#include <utility>

#include "data_loader/engine/stream_sender.h"

namespace satrap {

LoaderEngine::LoaderEngine(const Options& options, const std::vector<StreamSources>& streams,
                           const std::vector<rpc::Channel*>& workers, Executor* executor,
                           const std::function<void(absl::Status)>& failure) {
  for (const StreamSources& stream : streams) {
    StreamSender::Options sender;
    sender.stream = stream.stream;
    sender.ordered = stream.ordered;
    sender.epochs = stream.epochs;
    sender.max_open_parts = options.max_open_parts;
    sender.loader_index = options.loader_index;
    sender.envelope = options.envelope;
    sender.timeouts = options.timeouts;
    senders_.push_back(
        std::make_shared<StreamSender>(sender, executor, workers, stream.sources, failure));
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
