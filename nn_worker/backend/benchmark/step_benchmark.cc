// Samples per second of the dense network's training step on a device, from rows and ids in the
// device's memory to the gradients of the rows and a step of Adam (model_step.h). The program with
// the host's kernels only shows that the benchmark works. The figures that count are those of
// step_benchmark_cuda; tests/benchmark/pytorch_step.py measures the same with PyTorch.
//
//   step_benchmark [--model=deepfm|dlrm] [--batch=N] [--precision=F32|TF32|BF16|F16] [--seconds=3]
//                  [--capture=true|false] [--profile] [--card=0]
//
// If one of --model, --batch and --precision is not given, all its values that the device supports
// are run, one after the other. Both models have 26 features of dim 16 and 13 numerics:
//
//   deepfm   as in the zoo, with MLP 400-400-400; a row has 17 values, one of them a linear weight
//   dlrm     as in the zoo, with bottom MLP 512-256-64-16, except for its top MLP,
//            1024-1024-512-256; a row has 16 values
//
// Prints one JSON line for each configuration. `samples_per_second` is the median over windows of
// about kWindowSeconds, each of which ends when the device has finished its steps;
// `device_memory_bytes` is what was allocated. A loss that is not finite ends the program with an
// error.
//
// With --profile it prints instead how long each operation of a step takes on the card, without
// graphs (Device::BeginTrace): first the sum for each kind of operation, then all of them in their
// order. Each time is the median of kProfiledSteps steps, and includes the gap before the next
// operation. The products of cuBLASLt are named "library"; the kernels before and after a product
// show which layer it belongs to.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/base/cpu_name.h"
#include "common/base/status_macros.h"
#include "common/flags/flags.h"
#include "common/json/json.h"
#include "common/testing/measure.h"
#include "common/thread/clock.h"
#include "nn_worker/backend/benchmark/model_step.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/device/device_factory.h"
#include "nn_worker/backend/tensor_copy.h"
#include "nn_worker/device/metered_device.h"
#include "nn_worker/zoo/zoo.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr double kWindowSeconds = 0.1;
// The first step is enqueued directly, and the second one is captured.
constexpr int kWarmUpSteps = 4;
constexpr int kProfiledSteps = 9;
// These fills keep the card busy while a profiled step is enqueued, some 3 ms on a fast card, so
// that no measured time includes a wait for the host.
constexpr int kDelays = 32;
constexpr int64_t kDelayValues = int64_t{1} << 26;
constexpr int kDlrmTop[] = {1024, 1024, 512, 256};

using Precision = NnWorkerConfig::Precision;

constexpr char kPrecisions[] = "F32|TF32|BF16|F16";

struct Flags {
  std::string model;  // empty: both
  absl::optional<int64_t> batch;
  std::string precision;
  std::string capture = "true";
  bool profile = false;
  double seconds = 3;
  int card = 0;

  bool captures() const { return !profile && (capture == "true" || capture == "1"); }
  std::vector<Flag> Table() {
    return {
        ChoiceFlag("model", "deepfm|dlrm", "of the zoo (default: both)", &model),
        NumberFlag("batch", "N", "samples (default: some sizes)", &batch, 1),
        ChoiceFlag("precision", kPrecisions, "(default: all)", &precision),
        NumberFlag("seconds", "N", "that each is measured (default: 3)", &seconds, 0),
        ChoiceFlag("capture", "true|false|1|0", "whether steps are captured (default: true)",
                   &capture),
        SwitchFlag("profile", "prints how long each operation of a step takes on a card", &profile),
        NumberFlag("card", "N", "the card of this machine (default: 0)", &card, 0),
    };
  }
};

// All combinations of these models, batches and precisions are measured.
struct Choices {
  std::vector<std::string> models = {"deepfm", "dlrm"};
  std::vector<int64_t> batches;
  std::vector<Precision> precisions;
};

// For each flag its value or, if it is not given, all values that the device has.
absl::StatusOr<Choices> ChoicesOf(const Flags& flags) {
  Choices choices;
  const bool cuda = ProgramHasCards();
  if (flags.profile && !cuda) {
    return absl::InvalidArgumentError("--profile needs a card: run step_benchmark_cuda");
  }
  if (!flags.model.empty()) choices.models = {flags.model};
  choices.batches = cuda ? std::vector<int64_t>{8192, 65536, 131072} : std::vector<int64_t>{256};
  if (flags.batch.has_value()) choices.batches = {*flags.batch};
  choices.precisions = {NnWorkerConfig::F32, NnWorkerConfig::BF16, NnWorkerConfig::F16};
  if (cuda) choices.precisions.insert(choices.precisions.begin() + 1, NnWorkerConfig::TF32);
  if (!flags.precision.empty()) {
    choices.precisions.resize(1);
    NnWorkerConfig::Precision_Parse(flags.precision, &choices.precisions[0]);
    if (choices.precisions[0] == NnWorkerConfig::TF32 && !cuda) {
      return absl::InvalidArgumentError("TF32 needs a card: run step_benchmark_cuda");
    }
  }
  return choices;
}

// REQUIRES: `name` is a value of --model
ModelConfig ModelNamed(const std::string& name) {
  ModelConfig model = ZooModel(name).value();
  if (name != "dlrm") return model;
  for (LayerConfig& layer : *model.mutable_layers()) {
    if (layer.name() != "logit") continue;
    layer.mutable_mlp()->clear_units();
    for (const int units : kDlrmTop) layer.mutable_mlp()->add_units(units);
  }
  return model;
}

// Times steps: runs them, and waits for the last step by an event.
class Stopwatch {
 public:
  static absl::StatusOr<Stopwatch> Create(ModelStep* step, Backend* backend) {
    Stopwatch made(step, backend);
    ASSIGN_OR_RETURN(made.end_, backend->NewEvent());
    return made;
  }

  absl::StatusOr<double> SecondsOf(int64_t steps) {
    const double begin = MonotonicSeconds();
    for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(step_->Run());
    backend_->Record(DeviceQueue::kOperations, end_.get());
    RETURN_IF_ERROR(AwaitEvent(backend_, end_.get(), std::numeric_limits<int64_t>::max(),
                               [] { return false; }));
    return MonotonicSeconds() - begin;
  }

 private:
  Stopwatch(ModelStep* step, Backend* backend) : step_(step), backend_(backend) {}

  ModelStep* step_;
  Backend* backend_;
  std::unique_ptr<BackendEvent> end_;
};

struct Configuration {
  std::string model;
  int64_t batch = 0;
  Precision precision = NnWorkerConfig::F32;
};

// A step on a backend of its own.
struct MadeStep {
  Device* device = nullptr;  // the backend's
  std::string card;
  std::shared_ptr<DeviceMeter> meter = std::make_shared<DeviceMeter>();
  std::unique_ptr<Backend> backend;
  std::unique_ptr<ModelStep> step;
};

absl::StatusOr<MadeStep> MakeStep(const Configuration& configuration, const Flags& flags) {
  NnWorkerConfig config;
  config.set_device(ProgramHasCards() ? NnWorkerConfig::CUDA : NnWorkerConfig::HOST);
  config.set_precision(configuration.precision);
  config.set_compute_threads(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  ASSIGN_OR_RETURN(JobDevice on, NewJobDevice(config, flags.card));
  ASSIGN_OR_RETURN(const DeviceRoom room, on.device->Room());
  MadeStep made;
  made.device = on.device.get();
  made.card = room.device;
  DeviceBackendOptions backend_options;
  backend_options.meter = made.meter;
  ASSIGN_OR_RETURN(made.backend,
                   NewDeviceBackend(std::move(on.device), std::move(on.products), backend_options));
  ModelStepOptions options;
  options.model = ModelNamed(configuration.model);
  options.samples = configuration.batch;
  options.precision = configuration.precision;
  options.graph_capture = flags.captures();
  options.on_graph_refusal = [](const absl::Status& status) {
    std::fprintf(stderr, "step_benchmark: %s\n", std::string(status.message()).c_str());
  };
  options.backend = made.backend.get();
  ASSIGN_OR_RETURN(made.step, ModelStep::Create(options));
  return made;
}

absl::Status CheckLoss(double loss, const Configuration& configuration) {
  if (std::isfinite(loss)) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("the loss of ", configuration.model, " with batch ", configuration.batch, " in ",
                   NnWorkerConfig::Precision_Name(configuration.precision), " is ", loss));
}

absl::Status Measure(const Configuration& configuration, const Flags& flags) {
  ASSIGN_OR_RETURN(const MadeStep made, MakeStep(configuration, flags));
  ModelStep* const step = made.step.get();
  ASSIGN_OR_RETURN(Stopwatch stopwatch, Stopwatch::Create(step, made.backend.get()));

  // A card raises its clocks while it works, so the warm-up must also last for a minimum time.
  double shortest = std::numeric_limits<double>::infinity();
  double first_loss = 0;
  const double warm = MonotonicSeconds() + flags.seconds / 5;
  for (int i = 0; i < kWarmUpSteps || MonotonicSeconds() < warm; ++i) {
    ASSIGN_OR_RETURN(const double seconds, stopwatch.SecondsOf(1));
    shortest = std::min(shortest, seconds);
    if (i == 0) first_loss = step->ReadLoss();
  }
  const auto steps = std::max<int64_t>(1, std::llround(kWindowSeconds / shortest));
  std::vector<double> rates;
  for (const double end = MonotonicSeconds() + flags.seconds;
       rates.empty() || MonotonicSeconds() < end;) {
    ASSIGN_OR_RETURN(const double seconds, stopwatch.SecondsOf(steps));
    rates.push_back(static_cast<double>(steps * configuration.batch) / seconds);
  }
  const double loss = step->ReadLoss();
  RETURN_IF_ERROR(CheckLoss(loss, configuration));
  const double rate = Median(rates);
  StepLine line;
  line.set_benchmark("step");
  line.set_device(made.card);
  line.set_model(configuration.model);
  line.set_batch(configuration.batch);
  line.set_precision(NnWorkerConfig::Precision_Name(configuration.precision));
  line.set_capture(flags.captures());
  line.set_samples_per_second(rate);
  line.set_us_per_step(1e6 * static_cast<double>(configuration.batch) / rate);
  line.set_windows(rates.size());
  line.set_graph_launches(step->graph_launches());
  line.set_first_loss(first_loss);
  line.set_loss(loss);
  line.set_rows(step->num_rows());
  line.set_device_memory_bytes(made.meter->Read().peak_bytes);
  line.set_cpu(CpuName());
  PrintJson(line);
  return absl::OkStatus();
}

// The kernel and its template arguments, taken from KernelLaunch::signature, which the compiler
// makes.
std::string ShortName(absl::string_view signature) {
  const size_t begin = signature.find("kKernel = ");
  if (begin == absl::string_view::npos) return std::string(signature);
  signature.remove_prefix(begin + 10);
  if (absl::EndsWith(signature, "]")) signature.remove_suffix(1);
  return absl::StrReplaceAll(signature, {{"satrap::", ""},
                                         {"{anonymous}::", ""},
                                         {"<unnamed>::", ""},
                                         {"(anonymous namespace)::", ""}});
}

struct ProfiledOperation {
  std::string name;
  double us = 0;
};

void PrintProfile(const Configuration& configuration, const MadeStep& made,
                  const std::vector<ProfiledOperation>& operations) {
  double total = 0;
  struct Sum {
    int count = 0;
    double us = 0;
  };
  std::map<std::string, Sum> sums;
  for (const ProfiledOperation& operation : operations) {
    Sum& sum = sums[operation.name];
    ++sum.count;
    sum.us += operation.us;
    total += operation.us;
  }
  std::printf("%s, %s, batch %lld, %s: %zu operations, %.1f us\n", made.card.c_str(),
              configuration.model.c_str(), static_cast<long long>(configuration.batch),
              NnWorkerConfig::Precision_Name(configuration.precision).c_str(), operations.size(),
              total);
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  for (const auto& [name, sum] : sorted) {
    std::printf("%9.1f us %5.1f%% %4d times  %s\n", sum.us, 100 * sum.us / total, sum.count,
                name.c_str());
  }
  std::printf("\n");
  for (size_t i = 0; i < operations.size(); ++i) {
    std::printf("%4zu %9.1f us %5.1f%%  %s\n", i, operations[i].us, 100 * operations[i].us / total,
                operations[i].name.c_str());
  }
  std::fflush(stdout);
}

absl::Status Profile(const Configuration& configuration, const Flags& flags) {
  ASSIGN_OR_RETURN(const MadeStep made, MakeStep(configuration, flags));
  ASSIGN_OR_RETURN(const Tensor delay,
                   AllocateTensor(made.backend.get(), DType::kF32, 1, kDelayValues));
  for (int i = 0; i < kWarmUpSteps; ++i) RETURN_IF_ERROR(made.step->Run());
  made.backend->Sync();
  std::vector<ProfiledOperation> operations;
  std::vector<std::vector<double>> times;  // by operation, of each step
  for (int i = 0; i < kProfiledSteps; ++i) {
    for (int delays = 0; delays < kDelays; ++delays) made.backend->Fill(delay, 0);
    RETURN_IF_ERROR(made.device->BeginTrace());
    RETURN_IF_ERROR(made.step->Run());
    ASSIGN_OR_RETURN(const std::vector<TracedOperation> traced, made.device->EndTrace());
    if (i > 0 && traced.size() != times.size()) {
      return absl::InternalError(absl::StrCat("step ", i, " has ", traced.size(),
                                              " operations, the first has ", times.size()));
    }
    times.resize(traced.size());
    for (size_t t = 0; t < traced.size(); ++t) {
      if (i == 0) operations.push_back({ShortName(traced[t].name), 0});
      times[t].push_back(traced[t].us);
    }
  }
  for (size_t t = 0; t < operations.size(); ++t) operations[t].us = Median(times[t]);
  RETURN_IF_ERROR(CheckLoss(made.step->ReadLoss(), configuration));
  PrintProfile(configuration, made, operations);
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const Choices choices, ChoicesOf(flags));
  for (const std::string& model : choices.models) {
    for (const int64_t batch : choices.batches) {
      for (const Precision precision : choices.precisions) {
        RETURN_IF_ERROR(flags.profile ? Profile({model, batch, precision}, flags)
                                      : Measure({model, batch, precision}, flags));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace satrap

int main(int argc, char** argv) {
  satrap::Flags flags;
  const auto code =
      satrap::TakeProgramFlags(argc, argv, "usage: step_benchmark [FLAGS]", flags.Table());
  if (code.has_value()) return *code;
  const absl::Status status = satrap::Run(flags);
  if (status.ok()) return 0;
  std::fprintf(stderr, "step_benchmark: %s\n", std::string(status.message()).c_str());
  return 1;
}
