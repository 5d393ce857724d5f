#include "nn_worker/backend/benchmark/kernel_benchmark.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/cpu_name.h"
#include "common/base/status_macros.h"
#include "nn_worker/backend/benchmark/operation.h"
#include "nn_worker/backend/benchmark/products.h"
#include "nn_worker/backend/benchmark/workbench.h"
#include "nn_worker/backend/device/device_backend.h"
#include "nn_worker/backend/device/device_factory.h"

namespace satrap {
namespace {

constexpr int64_t kTimeoutMs = 300000;

struct LayerShape {
  int64_t in, out;
};
constexpr LayerShape kLayers[] = {{429, 400}, {400, 400}, {1024, 1024}, {1024, 512}};
constexpr LinearProduct kProducts[] = {LinearProduct::kForward, LinearProduct::kInputGradient,
                                       LinearProduct::kWeightGradient};

// The sizes to measure. The host's device is hundreds of times slower than a card, and so is a card
// whose accesses are checked. Results for the small sizes say nothing about a card; they only show
// that each operation runs.
struct Scale {
  int64_t batch, copy_bytes, square;
  TimingOptions timing;
};
constexpr Scale kOnCard = {65536, int64_t{256} << 20, 8192, {}};
constexpr Scale kSmall = {32, int64_t{16} << 20, 128, {0, 1, 0}};

DType DTypeOf(NnWorkerConfig::Precision precision) {
  if (precision == NnWorkerConfig::BF16) return DType::kBF16;
  return precision == NnWorkerConfig::F16 ? DType::kF16 : DType::kF32;
}

// Whether operations of these types are measured in this precision.
bool RunsIn(OperationTypes types, NnWorkerConfig::Precision precision) {
  switch (types) {
    case OperationTypes::kF32:
      return precision == NnWorkerConfig::F32;
    case OperationTypes::kBf16:
      return precision == NnWorkerConfig::BF16;
    case OperationTypes::kF32AndBf16:
      return precision == NnWorkerConfig::F32 || precision == NnWorkerConfig::BF16;
    case OperationTypes::kProducts:
      return true;
  }
  return false;
}

class Runner {
 public:
  using Made = absl::FunctionRef<void(const BenchmarkPlace&, const BenchmarkRow&)>;
  Runner(BenchmarkFlags flags, Made made) : flags_(std::move(flags)), made_(made) {}

  absl::Status Run() {
    RETURN_IF_ERROR(FindDevice());
    RETURN_IF_ERROR(MeasureCopies());
    for (const auto precision :
         {NnWorkerConfig::F32, NnWorkerConfig::TF32, NnWorkerConfig::BF16, NnWorkerConfig::F16}) {
      const bool is_chosen = flags_.precision == NnWorkerConfig::Precision_Name(precision);
      if (!flags_.precision.empty() && !is_chosen) continue;
      if (precision == NnWorkerConfig::TF32 && !on_card_) {
        if (!is_chosen) continue;
        return absl::InvalidArgumentError(
            "--precision=TF32 is for cards: this program has the host's device; run "
            "kernel_benchmark_cuda");
      }
      RETURN_IF_ERROR(MeasureProducts(precision));
      for (const BenchmarkOperation& operation : BenchmarkOperations()) {
        if (!RunsIn(operation.types, precision) || !IsWanted(operation.name, operation.what)) {
          continue;
        }
        RETURN_IF_ERROR(Measure(operation, precision));
      }
    }
    if (rows_ > 0) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("no row matches --only=", flags_.only,
                                            ": run without --only to list the rows"));
  }

 private:
  absl::StatusOr<JobDevice> NewDevice(NnWorkerConfig::Precision precision) const {
    NnWorkerConfig config;
    config.set_device(on_card_ ? NnWorkerConfig::CUDA : NnWorkerConfig::HOST);
    config.set_precision(precision);
    return NewJobDevice(config, flags_.card);
  }

  absl::Status FindDevice() {
    scale_ = on_card_ && !flags_.small ? kOnCard : kSmall;
    if (flags_.batch > 0) scale_.batch = flags_.batch;
    // One device stays open until the end, so that libraries load only once what they need.
    ASSIGN_OR_RETURN(held_, NewDevice(NnWorkerConfig::F32));
    ASSIGN_OR_RETURN(const DeviceRoom room, held_.device->Room());
    place_ = {room.device, CpuName(), scale_.batch};
    return absl::OkStatus();
  }

  bool IsWanted(const std::string& operation, const std::string& what) const {
    return absl::StrContains(absl::StrCat(operation, " ", what), flags_.only);
  }
  void Give(const BenchmarkRow& row) {
    if (row.ceiling > 0) ++rows_;
    made_(place_, row);
  }

  absl::StatusOr<std::unique_ptr<ProductBenchmark>> NewProducts(
      NnWorkerConfig::Precision precision) const {
    ASSIGN_OR_RETURN(JobDevice device, NewDevice(precision));
    return ProductBenchmark::Create(std::move(device), precision, scale_.timing);
  }

  absl::Status MeasureCopies() {
    ASSIGN_OR_RETURN(const auto copies, NewProducts(NnWorkerConfig::F32));
    ASSIGN_OR_RETURN(const BenchmarkRow copy, copies->Copy(scale_.copy_bytes));
    copy_rate_ = copy.rate();
    Give(copy);
    return absl::OkStatus();
  }

  // Measures the product ceiling, and then the products of the layers on their own, and kernels of
  // their backward pass.
  absl::Status MeasureProducts(NnWorkerConfig::Precision precision) {
    ASSIGN_OR_RETURN(const auto products, NewProducts(precision));
    ASSIGN_OR_RETURN(const BenchmarkRow ceiling, products->Square(scale_.square));
    product_rate_ = ceiling.rate();
    Give(ceiling);
    for (const auto& [in, out] : kLayers) {
      for (const LinearProduct product : kProducts) {
        if (!IsWanted("Product", ProductName(product, in, out))) continue;
        ASSIGN_OR_RETURN(BenchmarkRow row, products->OfLayer(product, scale_.batch, in, out));
        row.ceiling = product_rate_;
        Give(row);
      }
    }
    if (precision == NnWorkerConfig::TF32) return absl::OkStatus();  // they are no products
    if (IsWanted("ReluAndBiasGradient", "n x 400")) {
      ASSIGN_OR_RETURN(BenchmarkRow row, products->ReluAndBiasGradient(scale_.batch, 400));
      row.ceiling = copy_rate_;
      Give(row);
    }
    if (IsWanted("OneOutputGradients", "400 x 1")) {
      ASSIGN_OR_RETURN(BenchmarkRow row, products->OneOutputGradients(scale_.batch, 400));
      row.ceiling = copy_rate_;
      Give(row);
    }
    return absl::OkStatus();
  }

  // Measures an operation on a new backend, so that its time does not depend on what earlier
  // operations have left in scratch memory and in lists.
  absl::Status Measure(const BenchmarkOperation& operation, NnWorkerConfig::Precision precision) {
    ASSIGN_OR_RETURN(JobDevice device, NewDevice(precision));
    ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                     NewDeviceBackend(std::move(device.device), std::move(device.products)));
    ASSIGN_OR_RETURN(const std::unique_ptr<BackendEvent> end, backend->NewEvent());
    const auto await = [&] {
      backend->Record(DeviceQueue::kOperations, end.get());
      return AwaitEvent(backend.get(), end.get(), kTimeoutMs, [] { return false; });
    };
    Workbench workbench(backend.get(), scale_.batch, DTypeOf(precision));
    const BenchmarkWork work = operation.prepare(&workbench);
    RETURN_IF_ERROR(await());
    BenchmarkRow row;
    row.operation = operation.name;
    row.what = operation.what;
    row.precision = NnWorkerConfig::Precision_Name(precision);
    ASSIGN_OR_RETURN(row.timing, TimeOperation(scale_.timing, work.enqueue, await));
    // Each row has one ceiling: the rate of arithmetic for a product, and the rate of memory for
    // all other operations.
    row.flops = work.flops;
    row.bytes = work.flops > 0 ? 0 : work.bytes();
    row.sector_bytes = work.sector_bytes;
    row.ceiling = work.flops > 0 ? product_rate_ : copy_rate_;
    Give(row);
    return absl::OkStatus();
  }

  const BenchmarkFlags flags_;
  const Made made_;
  const bool on_card_ = ProgramHasCards();
  Scale scale_ = kSmall;
  BenchmarkPlace place_;
  JobDevice held_;
  double copy_rate_ = 0, product_rate_ = 0;  // product_rate_: of the current precision
  int rows_ = 0;                             // without the ceilings
};

}  // namespace

std::vector<Flag> BenchmarkFlags::Table() {
  return {
      NumberFlag("batch", "N", "samples (default: 65536 on a card, 32 on the host's device)",
                 &batch, 1, int64_t{1} << 24),
      NumberFlag("card", "N", "the card of this machine (default: 0)", &card, 0, 1023),
      SwitchFlag("small",
                 "runs each operation twice, with 32 samples unless --batch is given: for checkers",
                 &small),
      TextFlag("only", "TEXT",
               R"(measures only the rows whose operation and shape, as they are printed, contain
                  it)",
               &only),
      ChoiceFlag("precision", "F32|TF32|BF16|F16", "(default: all)", &precision),
  };
}

absl::Status RunKernelBenchmark(
    const BenchmarkFlags& flags,
    absl::FunctionRef<void(const BenchmarkPlace& place, const BenchmarkRow& row)> made) {
  return Runner(flags, made).Run();
}

}  // namespace satrap
