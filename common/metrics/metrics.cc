#include "common/metrics/metrics.h"

#include <prometheus/exposer.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace satrap {

struct MetricsRegistry::Rep {
  std::shared_ptr<prometheus::Registry> registry =
      // Merge: adding a metric under an existing name returns the existing metric.
      std::make_shared<prometheus::Registry>(prometheus::Registry::InsertBehavior::Merge);
  Labels labels;  // of every metric
};

MetricsRegistry::MetricsRegistry(const std::string& role, int index)
    : rep_(std::make_shared<Rep>()) {
  rep_->labels = {{"role", role}, {"index", absl::StrCat(index)}};
}

MetricsRegistry::~MetricsRegistry() = default;

prometheus::Counter* MetricsRegistry::AddCounter(const std::string& name, const std::string& help,
                                                 const Labels& labels) {
  auto& family = prometheus::BuildCounter()
                     .Name(name)
                     .Help(help)
                     .Labels(rep_->labels)
                     .Register(*rep_->registry);
  return &family.Add(labels);
}

prometheus::Gauge* MetricsRegistry::AddGauge(const std::string& name, const std::string& help,
                                             const Labels& labels) {
  auto& family =
      prometheus::BuildGauge().Name(name).Help(help).Labels(rep_->labels).Register(*rep_->registry);
  return &family.Add(labels);
}

prometheus::Histogram* MetricsRegistry::AddHistogram(const std::string& name,
                                                     const std::string& help,
                                                     const std::vector<double>& bounds,
                                                     const Labels& labels) {
  auto& family = prometheus::BuildHistogram()
                     .Name(name)
                     .Help(help)
                     .Labels(rep_->labels)
                     .Register(*rep_->registry);
  return &family.Add(labels, bounds);
}

std::string MetricsRegistry::Text() const {
  return prometheus::TextSerializer().Serialize(rep_->registry->Collect());
}

void RaiseTo(prometheus::Counter* counter, uint64_t value) {
  // The library ignores a negative increment, so a late reading with a smaller value changes
  // nothing.
  counter->Increment(static_cast<double>(value) - counter->Value());
}

std::vector<double> LatencyBounds() {
  std::vector<double> bounds;
  for (double bound = 100e-6; bound < 20; bound *= 2) bounds.push_back(bound);
  return bounds;
}

struct MetricsServer::Rep {
  const std::shared_ptr<prometheus::Registry> nothing = std::make_shared<prometheus::Registry>();
  bool is_ready = false;
  std::unique_ptr<prometheus::Exposer> exposer;
  std::string address;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const MetricsRegistry* registry,
                                                                    const std::string& address) {
  auto rep = std::make_unique<Rep>();
  // The library throws if it cannot listen; it has no other way to report that.
  try {
    // An idle connection occupies a thread until it times out, after 5 s. Up to three idle
    // connections do not delay other requests.
    rep->exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", address, "num_threads", "4", "request_timeout_ms", "5000"});
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", address, ": ", error.what()));
  }
  const std::vector<int> ports = rep->exposer->GetListeningPorts();
  if (ports.empty()) {
    return absl::UnavailableError(
        absl::StrCat("cannot serve metrics at ", address, ": the server has no port"));
  }
  rep->address = absl::StrCat(address.substr(0, address.rfind(':')), ":", ports[0]);
  rep->exposer->RegisterCollectable(registry->rep_->registry);
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(rep)));
}

MetricsServer::MetricsServer(std::unique_ptr<Rep> rep) : rep_(std::move(rep)) {}
MetricsServer::~MetricsServer() = default;

const std::string& MetricsServer::address() const { return rep_->address; }

void MetricsServer::ShowReady() {
  if (rep_->is_ready) return;
  rep_->is_ready = true;
  rep_->exposer->RegisterCollectable(rep_->nothing, "/ready");
}

}  // namespace satrap
