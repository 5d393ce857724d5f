#include "nn_worker/device/cuda/cublaslt_functions.h"

#include <cublasLt.h>

#include "common/base/status_macros.h"
#include "nn_worker/device/cuda/dynamic_library.h"

namespace satrap {

absl::StatusOr<CublasLt> CublasLt::Load(const std::string& name) {
  ASSIGN_OR_RETURN(const DynamicLibrary library, DynamicLibrary::Open(name));
  CublasLt lt;
  RETURN_IF_ERROR(library.Find("cublasLtCreate", &lt.Create));
  RETURN_IF_ERROR(library.Find("cublasLtDestroy", &lt.Destroy));
  RETURN_IF_ERROR(library.Find("cublasLtGetStatusName", &lt.StatusName));
  RETURN_IF_ERROR(library.Find("cublasLtGetVersion", &lt.Version));
  RETURN_IF_ERROR(library.Find("cublasLtMatmulAlgoConfigGetAttribute", &lt.GetConfig));
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

}  // namespace satrap
