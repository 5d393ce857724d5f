// The functions of cuBLASLt that plans call, with the types of the library's header. The library is
// loaded when it is first needed.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_FUNCTIONS_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_FUNCTIONS_H_

#include <cublasLt.h>

#include <string>

#include "absl/status/statusor.h"

namespace satrap {

struct CublasLt {
  // FAILED_PRECONDITION if the library is missing or lacks one of the functions. The message names
  // the library or the function.
  static absl::StatusOr<CublasLt> Load(const std::string& name);

  decltype(cublasLtCreate)* Create;
  decltype(cublasLtDestroy)* Destroy;
  decltype(cublasLtGetStatusName)* StatusName;
  decltype(cublasLtGetVersion)* Version;
  decltype(cublasLtMatmulAlgoConfigGetAttribute)* GetConfig;
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

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CUBLASLT_FUNCTIONS_H_
