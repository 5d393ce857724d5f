#include "nn_worker/device/cuda/cublaslt_plan.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "nn_worker/device/cuda/cuda_device.h"
#include "nn_worker/device/cuda/dynamic_library.h"
#include "nn_worker/device/first_accepted.h"

namespace satrap {
namespace {

constexpr int64_t kWorkspaceBytes = kMostPlanWorkspaceBytes;
// The number of algorithms that the heuristic is asked for, best first.
constexpr int kMostAlgorithms = 16;

// The functions of the library that this file uses, with the types of its header.
struct CublasLt {
  decltype(cublasLtCreate)* Create;
  decltype(cublasLtDestroy)* Destroy;
  decltype(cublasLtGetStatusName)* StatusName;
  decltype(cublasLtMatmul)* Matmul;
  decltype(cublasLtMatmulAlgoGetHeuristic)* Heuristic;
  decltype(cublasLtMatmulAlgoCheck)* Check;
  decltype(cublasLtMatmulDescCreate)* NewOperation;
  decltype(cublasLtMatmulDescDestroy)* DestroyOperation;
  decltype(cublasLtMatmulDescSetAttribute)* SetOperation;
  decltype(cublasLtMatrixLayoutCreate)* NewLayout;
  decltype(cublasLtMatrixLayoutDestroy)* DestroyLayout;
  decltype(cublasLtMatrixLayoutSetAttribute)* SetLayout;
  decltype(cublasLtMatmulPreferenceCreate)* NewPreference;
  decltype(cublasLtMatmulPreferenceDestroy)* DestroyPreference;
  decltype(cublasLtMatmulPreferenceSetAttribute)* SetPreference;
};

absl::StatusOr<CublasLt> Load(const std::string& name) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open(name));
  CublasLt lt;
  RETURN_IF_ERROR(library.Find("cublasLtCreate", &lt.Create));
  RETURN_IF_ERROR(library.Find("cublasLtDestroy", &lt.Destroy));
  RETURN_IF_ERROR(library.Find("cublasLtGetStatusName", &lt.StatusName));
  RETURN_IF_ERROR(library.Find("cublasLtMatmul", &lt.Matmul));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoGetHeuristic", &lt.Heuristic));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoCheck", &lt.Check));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulDescCreate", &lt.NewOperation));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulDescDestroy", &lt.DestroyOperation));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulDescSetAttribute", &lt.SetOperation));
  RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutCreate", &lt.NewLayout));
  RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutDestroy", &lt.DestroyLayout));
  RETURN_IF_ERROR(library.Find("cublasLtMatrixLayoutSetAttribute", &lt.SetLayout));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceCreate", &lt.NewPreference));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceDestroy", &lt.DestroyPreference));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulPreferenceSetAttribute", &lt.SetPreference));
  return lt;
}

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

// COMPUTE_32F never rounds f32 factors; only the type named after TF32 does.
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
    case ProductEpilogue::kBiasReluMask:
      return CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
    case ProductEpilogue::kReluGrad:
      return CUBLASLT_EPILOGUE_DRELU;
    case ProductEpilogue::kColumnSums:
      // The library's first factor is the spec's b; summing its rows gives the sums of b's columns.
      return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool HasBias(ProductEpilogue epilogue) {
  return epilogue == ProductEpilogue::kBias || epilogue == ProductEpilogue::kBiasRelu ||
         epilogue == ProductEpilogue::kBiasReluMask;
}

class CublasLtPlan final : public ProductPlan {
 public:
  CublasLtPlan(const CublasLt& lt, cublasLtHandle_t handle, int card, const ProductSpec& spec)
      : lt_(lt), handle_(handle), card_(card), spec_(spec) {}
  ~CublasLtPlan() override {
    for (cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
      if (layout != nullptr) lt_.DestroyLayout(layout);
    }
    if (operation_ != nullptr) lt_.DestroyOperation(operation_);
  }

  // Must be called once, before the first Run.
  absl::Status Prepare();
  void Run(DeviceStream* stream, int64_t samples, const ProductBuffers& buffers,
           void* workspace) override;

 private:
  absl::Status DescribeOperation();
  absl::Status DescribeMatrices();
  absl::Status ChooseAlgorithm();
  // NOT_FOUND if `algorithm` does not support every number of samples.
  absl::Status CheckAlgorithm(const cublasLtMatmulAlgo_t& algorithm);
  // Adapts the matrix descriptions to the number of samples.
  cublasStatus_t SetSamples(int64_t samples);
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

  // The status of a request that the library may refuse. For a combination of types and epilogue
  // that it does not support, the library may also return "invalid value".
  absl::Status Answer(cublasStatus_t status, const char* what) const {
    return AsStatus(
        status == CUBLAS_STATUS_INVALID_VALUE && spec_.epilogue != ProductEpilogue::kNone
            ? CUBLAS_STATUS_NOT_SUPPORTED
            : status,
        what);
  }

  const CublasLt& lt_;
  const cublasLtHandle_t handle_;
  const int card_;
  const ProductSpec spec_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;  // as the library names them
  cublasLtMatmulAlgo_t algorithm_;
};

absl::Status CublasLtPlan::Prepare() {
  RETURN_IF_ERROR(DescribeOperation());
  RETURN_IF_ERROR(DescribeMatrices());
  return ChooseAlgorithm();
}

absl::Status CublasLtPlan::DescribeOperation() {
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
  if (HasBias(spec_.epilogue)) {
    // Without this the library assumes that the bias has the type of the result.
    RETURN_IF_ERROR(AsStatus(
        SetOperation(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(CUDA_R_32F)),
        "its bias"));
  }
  return AsStatus(SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(spec_.epilogue)),
                  "its epilogue");
}

absl::Status CublasLtPlan::DescribeMatrices() {
  const cudaDataType_t type = FactorType(spec_.precision);
  const ColumnMajor product = ToColumnMajor(spec_, spec_.samples());
  RETURN_IF_ERROR(AsStatus(
      lt_.NewLayout(&a_, type, product.a.rows, product.a.cols, product.a.stride), "first factor"));
  RETURN_IF_ERROR(AsStatus(
      lt_.NewLayout(&b_, type, product.b.rows, product.b.cols, product.b.stride), "second factor"));
  return AsStatus(lt_.NewLayout(&c_, spec_.f32_output ? CUDA_R_32F : type, product.m, product.n,
                                product.d_stride),
                  "result");
}

absl::Status CublasLtPlan::ChooseAlgorithm() {
  // The heuristic derives the alignment of these buffers from their addresses and does not read
  // them.
  alignas(256) static float somewhere[1];
  ProductBuffers aligned;
  aligned.bias = aligned.sums = somewhere;
  aligned.mask = somewhere;
  RETURN_IF_ERROR(AsStatus(SetBuffers(aligned), "its epilogue's memory"));

  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_ERROR(AsStatus(lt_.NewPreference(&preference), "a preference"));
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
  cublasLtMatmulHeuristicResult_t answers[kMostAlgorithms];
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt_.Heuristic(handle_, operation_, a_, b_, c_, c_, preference, kMostAlgorithms,
                           answers, &found);
  }
  lt_.DestroyPreference(preference);
  RETURN_IF_ERROR(Answer(status, "asking for an algorithm"));
  if (found == 0) return absl::NotFoundError("cuBLASLt has no algorithm for this product");
  ASSIGN_OR_RETURN(const int taken, FirstAccepted(found, [&](int i) {
                     RETURN_IF_ERROR(Answer(answers[i].state, "an algorithm"));
                     return CheckAlgorithm(answers[i].algo);
                   }));
  algorithm_ = answers[taken].algo;
  return absl::OkStatus();
}

// One algorithm is used for all numbers of samples, so an algorithm that supports only the largest
// is rejected.
absl::Status CublasLtPlan::CheckAlgorithm(const cublasLtMatmulAlgo_t& algorithm) {
  for (const int64_t samples : {int64_t{1}, spec_.samples() / 2 + 1, spec_.samples()}) {
    RETURN_IF_ERROR(AsStatus(SetSamples(samples), "fewer samples"));
    cublasLtMatmulHeuristicResult_t checked;
    RETURN_IF_ERROR(Answer(lt_.Check(handle_, operation_, a_, b_, c_, c_, &algorithm, &checked),
                           "fewer samples"));
    if (checked.workspaceSize > static_cast<size_t>(kWorkspaceBytes)) {
      return absl::NotFoundError("cuBLASLt needs more workspace than there is");
    }
  }
  return absl::OkStatus();
}

cublasStatus_t CublasLtPlan::SetSamples(int64_t samples) {
  const ColumnMajor product = ToColumnMajor(spec_, samples);
  const auto set = [this](cublasLtMatrixLayout_t layout, int64_t rows, int64_t cols) {
    const auto r = static_cast<uint64_t>(rows), c = static_cast<uint64_t>(cols);
    const cublasStatus_t status = lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, &r, sizeof(r));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    return lt_.SetLayout(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &c, sizeof(c));
  };
  cublasStatus_t status = set(a_, product.a.rows, product.a.cols);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(b_, product.b.rows, product.b.cols);
  if (status == CUBLAS_STATUS_SUCCESS) status = set(c_, product.m, product.n);
  return status;
}

cublasStatus_t CublasLtPlan::SetBuffers(const ProductBuffers& buffers) {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  switch (spec_.epilogue) {
    case ProductEpilogue::kNone:
      return CUBLAS_STATUS_SUCCESS;
    case ProductEpilogue::kBias:
    case ProductEpilogue::kBiasRelu:
      return SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, buffers.bias);
    case ProductEpilogue::kColumnSums:
      return SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, buffers.sums);
    case ProductEpilogue::kBiasReluMask:
      status = SetOperation(CUBLASLT_MATMUL_DESC_BIAS_POINTER, buffers.bias);
      break;
    case ProductEpilogue::kReluGrad:
      break;
  }
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  status = SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, buffers.mask);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return SetOperation(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MaskStride(spec_.cols));
}

void CublasLtPlan::Run(DeviceStream* stream, int64_t samples, const ProductBuffers& buffers,
                       void* workspace) {
  CHECK(samples >= 1 && samples <= spec_.samples()) << samples << " of " << spec_.samples();
  const float alpha = 1, beta = buffers.add ? 1 : 0;
  cudaSetDevice(card_);
  cublasStatus_t status = SetSamples(samples);
  if (status == CUBLAS_STATUS_SUCCESS) status = SetBuffers(buffers);
  if (status == CUBLAS_STATUS_SUCCESS) {
    // The spec's b is the library's first factor (product_spec.h).
    status =
        lt_.Matmul(handle_, operation_, &alpha, buffers.b, a_, buffers.a, b_, &beta, buffers.c, c_,
                   buffers.c, c_, &algorithm_, workspace, static_cast<size_t>(kWorkspaceBytes),
                   static_cast<cudaStream_t>(CudaStreamOf(stream)));
  }
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text =
      absl::StrCat("cuBLASLt: a product of ", samples, " samples: ", lt_.StatusName(status));
  // Prepare has checked such numbers of samples, so a refusal is a bug of ours. Any other error
  // belongs to the card, and is reported to callers that wait for the card.
  CHECK(status != CUBLAS_STATUS_INVALID_VALUE && status != CUBLAS_STATUS_NOT_SUPPORTED) << text;
  KeepErrorOfCard(stream, absl::InternalError(text));
}

class CublasLtPlanner final : public ProductPlanner {
 public:
  CublasLtPlanner(const CublasLt& lt, cublasLtHandle_t handle, int card)
      : lt_(lt), handle_(handle), card_(card) {}
  ~CublasLtPlanner() override { lt_.Destroy(handle_); }

  int64_t workspace_bytes() const override { return kWorkspaceBytes; }
  absl::StatusOr<std::unique_ptr<ProductPlan>> Prepare(const ProductSpec& spec) override {
    CHECK(ForLibrary(spec)) << spec.rows << " x " << spec.cols << " of " << spec.terms << " terms";
    CHECK(spec.epilogue != ProductEpilogue::kColumnSums || spec.f32_output);
    cudaSetDevice(card_);
    auto plan = std::make_unique<CublasLtPlan>(lt_, handle_, card_, spec);
    RETURN_IF_ERROR(plan->Prepare());
    return plan;
  }

 private:
  const CublasLt lt_;
  const cublasLtHandle_t handle_;
  const int card_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ProductPlanner>> NewCublasLtPlanner(int card,
                                                                   const std::string& library) {
  ASSIGN_OR_RETURN(const CublasLt lt, Load(library));
  // The handle belongs to the card that is current in this thread.
  const cudaError_t chosen = cudaSetDevice(card);
  if (chosen != cudaSuccess) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt: card ", card, ": ", cudaGetErrorString(chosen)));
  }
  cublasLtHandle_t handle = nullptr;
  const cublasStatus_t status = lt.Create(&handle);
  if (status != CUBLAS_STATUS_SUCCESS) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuBLASLt cannot begin on card ", card, ": ", lt.StatusName(status)));
  }
  return std::make_unique<CublasLtPlanner>(lt, handle, card);
}

}  // namespace satrap
