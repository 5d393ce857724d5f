#include "nn_worker/device/cuda/cublaslt_plan.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/device/cuda/cublaslt_functions.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/device/first_accepted.h"

namespace satrap {
namespace {

constexpr int64_t kWorkspaceBytes = kMostPlanWorkspaceBytes;
// The number of algorithms that the heuristic is asked for, best first.
constexpr int kMostAlgorithms = 16;

cudaDataType_t FactorType(ProductPrecision precision) {
  switch (precision) {
    case ProductPrecision::kF32:
    case ProductPrecision::kTf32:
      return CUDA_R_32F;
    case ProductPrecision::kBf16:
      return CUDA_R_16BF;
    case ProductPrecision::kF16:
      return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

// COMPUTE_32F never rounds f32 factors. Only the type that is named after TF32 rounds them.
cublasComputeType_t ComputeType(ProductPrecision precision) {
  return precision == ProductPrecision::kTf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t EpilogueOf(ProductEpilogue epilogue) {
  switch (epilogue) {
    case ProductEpilogue::kNone:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case ProductEpilogue::kBias:
      return CUBLASLT_EPILOGUE_BIAS;
    case ProductEpilogue::kBiasRelu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

// Attributes that an algorithm does not have count as 0.
AlgorithmConfig ConfigOf(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm) {
  constexpr cublasLtMatmulAlgoConfigAttributes_t kAttributes[] = {
      CUBLASLT_ALGO_CONFIG_ID,
      CUBLASLT_ALGO_CONFIG_TILE_ID,
      CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
      CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
      CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
      CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION,
      CUBLASLT_ALGO_CONFIG_STAGES_ID,
      CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID,
      CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
  };
  AlgorithmConfig config = {};
  for (size_t i = 0; i < config.size(); ++i) {
    // The last two attributes are 16-bit numbers. The other half of their value stays 0.
    const bool narrow = kAttributes[i] == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                        kAttributes[i] == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
    int32_t value = 0;
    size_t written = 0;
    const cublasStatus_t status = lt.GetConfig(&algorithm, kAttributes[i], &value,
                                               narrow ? sizeof(uint16_t) : sizeof(value), &written);
    if (status == CUBLAS_STATUS_SUCCESS) config[i] = value;
  }
  return config;
}

// What all plans of a planner share.
struct PlanContext {
  CublasLt lt;
  cublasLtHandle_t handle;
  int card;
  AlgorithmPlace place;
  absl::Span<const MeasuredAlgorithm> table;
};

// How many equal products run at once, and for how many samples each.
struct ProductBatch {
  int64_t count, samples;
};

// Products by one algorithm: the product of a spec without pieces, or the products of the whole
// pieces of a spec with pieces.
class OneAlgorithm {
 public:
  OneAlgorithm(const PlanContext& context, const ProductSpec& spec)
      : context_(context), lt_(context.lt), spec_(spec) {}
  ~OneAlgorithm() {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) lt_.DestroyLayout(layout);
    }
    if (operation_ != nullptr) lt_.DestroyOperation(operation_);
  }

  // Must be called once, before Run. Takes alternative number `alternative` among the algorithms
  // that support all products; 0 is the preferred one. NOT_FOUND if there are not that many.
  absl::Status Prepare(int alternative);
  AlgorithmConfig algorithm() const { return ConfigOf(lt_, algorithm_); }
  // REQUIRES: if there are pieces, batch.samples is a piece; otherwise batch.count is 1
  void Run(DeviceStream* stream, const ProductBatch& batch, const ProductBuffers& buffers,
           void* workspace);

 private:
  absl::Status DescribeOperation();
  absl::Status DescribeMatrices();
  absl::Status ChooseAlgorithm(int alternative);
  // Appends the algorithms that the heuristic offers for the products of `batch`.
  absl::Status AskFor(const ProductBatch& batch, cublasLtMatmulPreference_t preference,
                      std::vector<cublasLtMatmulAlgo_t>* offered);
  cublasStatus_t SetPreferences(cublasLtMatmulPreference_t preference);
  // NOT_FOUND if `algorithm` does not support all numbers of samples that it is used for.
  absl::Status CheckAlgorithm(const cublasLtMatmulAlgo_t& algorithm);
  // The products for which an algorithm is checked, the largest first.
  std::vector<ProductBatch> CheckedBatches() const;
  // Adapts the matrix descriptions to the products.
  cublasStatus_t SetBatch(const ProductBatch& batch);
  cublasStatus_t SetBuffers(const ProductBuffers& buffers);

  template <typename T>
  cublasStatus_t SetOperation(cublasLtMatmulDescAttributes_t attribute, T value) {
    return lt_.SetOperation(operation_, attribute, &value, sizeof(value));
  }
  absl::Status AsStatus(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    const std::string text = absl::StrCat("cuBLASLt: ", what, ": ", lt_.StatusName(status));
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? absl::NotFoundError(text)
                                                 : absl::InternalError(text);
  }

  // The status for the library's answer to a request that it may refuse. With an epilogue,
  // "invalid value" is a refusal: the library may return it for types that the epilogue lacks.
  absl::Status Answer(cublasStatus_t status, const char* what) const {
    return AsStatus(
        status == CUBLAS_STATUS_INVALID_VALUE && spec_.epilogue != ProductEpilogue::kNone
            ? CUBLAS_STATUS_NOT_SUPPORTED
            : status,
        what);
  }

  const PlanContext& context_;
  const CublasLt& lt_;
  const ProductSpec spec_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;  // as the library names them
  cublasLtMatmulAlgo_t algorithm_;
};

absl::Status OneAlgorithm::Prepare(int alternative) {
  RETURN_IF_ERROR(DescribeOperation());
  RETURN_IF_ERROR(DescribeMatrices());
  return ChooseAlgorithm(alternative);
}

absl::Status OneAlgorithm::DescribeOperation() {
  RETURN_IF_ERROR(AsStatus(lt_.NewOperation(&operation_, ComputeType(spec_.precision), CUDA_R_32F),
                           "a description of a product"));
  const ColumnMajor product = ToColumnMajor(spec_, spec_.samples());
  const auto operation_of = [](const ColumnMajor::Factor& factor) {
    return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  };
  RETURN_IF_ERROR(AsStatus(SetOperation(CUBLASLT_MATMUL_DESC_TRANSA, operation_of(product.a)),
                           "its first factor"));
  RETURN_IF_ERROR(AsStatus(SetOperation(CUBLASLT_MATMUL_DESC_TRANSB, operation_of(product.b)),
                           "its second factor"));
  // The library expects a bias of the type of the result, and ours has this type.
  return AsStatus(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(spec_.epilogue)),
                  "its epilogue");
}

absl::Status OneAlgorithm::DescribeMatrices() {
  const cudaDataType_t type = FactorType(spec_.precision);
  const ColumnMajor product = ToColumnMajor(spec_, spec_.samples());
  RETURN_IF_ERROR(AsStatus(
      lt_.NewLayout(&a_, type, product.a.rows, product.a.cols, product.a.stride), "first factor"));
  RETURN_IF_ERROR(AsStatus(
      lt_.NewLayout(&b_, type, product.b.rows, product.b.cols, product.b.stride), "second factor"));
  RETURN_IF_ERROR(AsStatus(lt_.NewLayout(&c_, spec_.f32_output ? CUDA_R_32F : type, product.m,
                                         product.n, product.d_stride),
                           "result"));
  if (spec_.piece == 0) return absl::OkStatus();
  // The distance from one piece to the next.
  for (const auto& [layout, values] :
       {std::pair(a_, spec_.piece * spec_.b_stride), std::pair(b_, spec_.piece * spec_.a_stride),
        std::pair(c_, spec_.rows * spec_.c_stride)}) {
    RETURN_IF_ERROR(AsStatus(
        lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &values, sizeof(values)),
        "its pieces"));
  }
  return absl::OkStatus();
}

cublasStatus_t OneAlgorithm::SetPreferences(cublasLtMatmulPreference_t preference) {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    return lt_.SetPreference(preference, attribute, &value, sizeof(value));
  };
  cublasStatus_t status =
      set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kWorkspaceBytes));
  // Reduction schemes are not allowed: with them, several blocks compute parts of a sum, and the
  // library decides in which order the parts are added.
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
  }
  // The spec's b is the library's first factor.
  for (const auto& [attribute, bytes] :
       {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, spec_.b_alignment),
        std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, spec_.a_alignment),
        std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, spec_.c_alignment),
        std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, spec_.c_alignment)}) {
    if (status == CUBLAS_STATUS_SUCCESS) status = set(attribute, static_cast<uint32_t>(bytes));
  }
  return status;
}

absl::Status OneAlgorithm::AskFor(const ProductBatch& batch, cublasLtMatmulPreference_t preference,
                                  std::vector<cublasLtMatmulAlgo_t>* offered) {
  RETURN_IF_ERROR(AsStatus(SetBatch(batch), "its size"));
  cublasLtMatmulHeuristicResult_t answers[kMostAlgorithms];
  int found = 0;
  const absl::Status answer = Answer(lt_.Heuristic(context_.handle, operation_, a_, b_, c_, c_,
                                                   preference, kMostAlgorithms, answers, &found),
                                     "asking for an algorithm");
  if (absl::IsNotFound(answer)) return absl::OkStatus();
  RETURN_IF_ERROR(answer);
  for (int i = 0; i < found; ++i) {
    if (answers[i].state == CUBLAS_STATUS_SUCCESS) offered->push_back(answers[i].algo);
  }
  return absl::OkStatus();
}

absl::Status OneAlgorithm::ChooseAlgorithm(int alternative) {
  // The heuristic derives the alignment of a bias from its address and does not read it.
  alignas(256) static float somewhere[1];
  ProductBuffers aligned;
  aligned.bias = somewhere;
  RETURN_IF_ERROR(AsStatus(SetBuffers(aligned), "its epilogue's memory"));
  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_ERROR(AsStatus(lt_.NewPreference(&preference), "a preference"));
  absl::Status status = AsStatus(SetPreferences(preference), "a preference");
  std::vector<cublasLtMatmulAlgo_t> offered;
  const std::vector<ProductBatch> batches = CheckedBatches();
  if (status.ok()) status = AskFor(batches.front(), preference, &offered);
  // If none of these algorithms supports a small product, perhaps one of those offered for the
  // smallest product supports all products.
  if (status.ok()) AskFor(batches.back(), preference, &offered).IgnoreError();
  lt_.DestroyPreference(preference);
  RETURN_IF_ERROR(status);
  std::vector<AlgorithmConfig> configs;
  for (const cublasLtMatmulAlgo_t& algorithm : offered) {
    configs.push_back(ConfigOf(lt_, algorithm));
  }
  const int preferred =
      PreferredAlgorithm(configs, FindAlgorithm(context_.table, context_.place, spec_));
  if (offered.empty()) return absl::NotFoundError("cuBLASLt has no algorithm for this product");
  std::rotate(offered.begin(), offered.begin() + preferred, offered.begin() + preferred + 1);
  int accepted = -1;
  ASSIGN_OR_RETURN(const int taken, FirstAccepted(static_cast<int>(offered.size()), [&](int i) {
                     RETURN_IF_ERROR(CheckAlgorithm(offered[i]));
                     return ++accepted < alternative ? absl::NotFoundError("an earlier alternative")
                                                     : absl::OkStatus();
                   }));
  algorithm_ = offered[taken];
  return absl::OkStatus();
}

std::vector<ProductBatch> OneAlgorithm::CheckedBatches() const {
  if (spec_.piece > 0) return {{spec_.samples() / spec_.piece, spec_.piece}, {1, spec_.piece}};
  return {{1, spec_.samples()}, {1, spec_.samples() / 2 + 1}, {1, 1}};
}

absl::Status OneAlgorithm::CheckAlgorithm(const cublasLtMatmulAlgo_t& algorithm) {
  for (const ProductBatch& batch : CheckedBatches()) {
    RETURN_IF_ERROR(AsStatus(SetBatch(batch), "fewer samples"));
    cublasLtMatmulHeuristicResult_t checked;
    const cublasStatus_t status =
        lt_.Check(context_.handle, operation_, a_, b_, c_, c_, &algorithm, &checked);
    // According to its documentation, the check returns these values if an algorithm does not match
    // the layouts or the card.
    if (status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_ARCH_MISMATCH) {
      return absl::NotFoundError("cuBLASLt: the algorithm does not fit the product");
    }
    RETURN_IF_ERROR(AsStatus(status, "fewer samples"));
    if (checked.workspaceSize > static_cast<size_t>(kWorkspaceBytes)) {
      return absl::NotFoundError("cuBLASLt needs more workspace than there is");
    }
  }
  return absl::OkStatus();
}

cublasStatus_t OneAlgorithm::SetBatch(const ProductBatch& batch) {
  const ColumnMajor product = ToColumnMajor(spec_, batch.samples);
  const auto set = [&](cublasLtMatrixLayout_t layout, int64_t rows, int64_t cols) {
    const auto r = static_cast<uint64_t>(rows), c = static_cast<uint64_t>(cols);
    const auto count = static_cast<int32_t>(batch.count);
    cublasStatus_t status = lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &r, sizeof(r));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    status = lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &c, sizeof(c));
    if (status != CUBLAS_STATUS_SUCCESS || spec_.piece == 0) return status;
    return lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count));
  };
  cublasStatus_t status = set(a_, product.a.rows, product.a.cols);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(b_, product.b.rows, product.b.cols);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(c_, product.m, product.n);
  return status;
}

cublasStatus_t OneAlgorithm::SetBuffers(const ProductBuffers& buffers) {
  if (spec_.epilogue == ProductEpilogue::kNone) return CUBLAS_STATUS_SUCCESS;
  return SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, buffers.bias);
}

void OneAlgorithm::Run(DeviceStream* stream, const ProductBatch& batch,
                       const ProductBuffers& buffers, void* workspace) {
  const float alpha = 1, beta = buffers.add ? 1 : 0;
  cudaSetDevice(context_.card);
  cublasStatus_t status = SetBatch(batch);
  if (status == CUBLAS_STATUS_SUCCESS) status = SetBuffers(buffers);
  if (status == CUBLAS_STATUS_SUCCESS) {
    // The spec's b is the library's first factor (product_spec.h).
    status = lt_.Matmul(context_.handle, operation_, &alpha, buffers.b, a_, buffers.a, b_, &beta,
                        buffers.c, c_, buffers.c, c_, &algorithm_, workspace,
                        static_cast<size_t>(kWorkspaceBytes),
                        static_cast<cudaStream_t>(CudaStreamOf(stream)));
  }
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = absl::StrCat("cuBLASLt: ", batch.count, " products of ", batch.samples,
                                        " samples: ", lt_.StatusName(status));
  // Prepare has checked products of fewer samples, too (CheckAlgorithm), so a refusal is a bug of
  // ours. Any other error belongs to the card, and is reported to callers that wait for the card.
  CHECK(status != CUBLAS_STATUS_INVALID_VALUE && status != CUBLAS_STATUS_NOT_SUPPORTED) << text;
  KeepErrorOfCard(stream, absl::InternalError(text));
}

class CublasLtPlan final : public ProductPlan {
 public:
  CublasLtPlan(const PlanContext& context, const ProductSpec& spec)
      : spec_(spec), products_(context, spec), last_piece_(context, LastPiece(spec)) {}

  // Must be called once, before the first Run. `alternative` is as for OneAlgorithm.
  absl::Status Prepare(int alternative) {
    RETURN_IF_ERROR(products_.Prepare(alternative));
    return spec_.piece == 0 ? absl::OkStatus() : last_piece_.Prepare(0);
  }
  AlgorithmConfig algorithm() const { return products_.algorithm(); }

  void Run(DeviceStream* stream, int64_t samples, const ProductBuffers& buffers,
           void* workspace) override {
    CHECK(samples >= 1 && samples <= spec_.samples()) << samples << " of " << spec_.samples();
    if (spec_.piece == 0) return products_.Run(stream, {1, samples}, buffers, workspace);
    const int64_t whole = samples / spec_.piece, left = samples % spec_.piece;
    if (whole > 0) products_.Run(stream, {whole, spec_.piece}, buffers, workspace);
    if (left > 0) last_piece_.Run(stream, {1, left}, PieceAt(whole, buffers), workspace);
  }

 private:
  static ProductSpec LastPiece(ProductSpec spec) {
    spec.terms = spec.piece;
    spec.piece = 0;
    return spec;
  }
  ProductBuffers PieceAt(int64_t piece, ProductBuffers buffers) const {
    const int64_t value_bytes = FactorType(spec_.precision) == CUDA_R_32F ? 4 : 2;
    const int64_t first = piece * spec_.piece;
    buffers.a = static_cast<const char*>(buffers.a) + first * spec_.a_stride * value_bytes;
    buffers.b = static_cast<const char*>(buffers.b) + first * spec_.b_stride * value_bytes;
    buffers.c = static_cast<float*>(buffers.c) + piece * spec_.rows * spec_.c_stride;
    return buffers;
  }

  const ProductSpec spec_;
  OneAlgorithm products_;    // whole pieces, if there are pieces
  OneAlgorithm last_piece_;  // used only with pieces
};

class Planner final : public CublasLtPlanner {
 public:
  explicit Planner(const PlanContext& context) : context_(context) {}
  ~Planner() override { context_.lt.Destroy(context_.handle); }

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  AlgorithmPlace place() const override { return context_.place; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& spec) override {
    return PlanWith(spec, /*alternative=*/0);
  }
  absl::StatusOr<std::vector<PlannedAlgorithm>> PrepareAll(const ProductSpec& spec) override {
    std::vector<PlannedAlgorithm> all;
    while (true) {
      auto plan = PlanWith(spec, static_cast<int>(all.size()));
      if (absl::IsNotFound(plan.status()) && !all.empty()) return all;
      RETURN_IF_ERROR(plan.status());
      const AlgorithmConfig algorithm = (*plan)->algorithm();
      all.push_back({algorithm, *std::move(plan)});
    }
  }

 private:
  absl::StatusOr<std::unique_ptr<CublasLtPlan>> PlanWith(const ProductSpec& spec, int alternative) {
    CHECK(ForLibrary(spec)) << spec.rows << " x " << spec.cols << " of " << spec.terms << " terms";
    CHECK(spec.piece == 0 || (spec.transpose_a && spec.f32_output && spec.piece < spec.terms &&
                              spec.epilogue == ProductEpilogue::kNone));
    cudaSetDevice(context_.card);
    auto plan = std::make_unique<CublasLtPlan>(context_, spec);
    RETURN_IF_ERROR(plan->Prepare(alternative));
    return plan;
  }

  const PlanContext context_;
};

absl::StatusOr<AlgorithmPlace> PlaceOf(const CublasLt& lt, int card) {
  int major = 0, minor = 0, multiprocessors = 0;
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, card);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, card);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, card);
  }
  if (error != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt: card ", card, ": ", cudaGetErrorString(error)));
  }
  return AlgorithmPlace{static_cast<int64_t>(lt.Version()), major * 10 + minor, multiprocessors};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CublasLtPlanner>> NewCublasLtPlanner(
    int card, const std::string& library, absl::Span<const MeasuredAlgorithm> table) {
  ASSIGN_OR_RETURN(const CublasLt lt, CublasLt::Load(library));
  // The handle belongs to the card that is current in this thread.
  const cudaError_t chosen = cudaSetDevice(card);
  if (chosen != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt: card ", card, ": ", cudaGetErrorString(chosen)));
  }
  ASSIGN_OR_RETURN(const AlgorithmPlace place, PlaceOf(lt, card));
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = lt.Create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt cannot begin on card ", card, ": ", lt.StatusName(status)));
  }
  return std::make_unique<Planner>(PlanContext{lt, handle, card, place, table});
}

}  // namespace satrap
