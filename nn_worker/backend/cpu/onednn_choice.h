// Reports which of oneDNN's implementations multiplies matrices. oneDNN computes every product that
// it is asked for. Where it has no fast implementation, it uses a reference implementation ("ref"),
// whose loops take a thousand times as long, and only the implementation's name shows that.
//
// Only products of BF16 are primitives, which have such a name. Products of F32 (cpu_matrix.h) are
// calls of dnnl_sgemm, which is a function, so there is no primitive to ask. Nor is that needed:
// whether dnnl_sgemm runs code that is generated for the CPU or its reference depends on the CPU
// alone, and not on the shape and the strides.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// The ways to compute a product with oneDNN, in the order in which they are tried.
enum class OneDnnWay { kInnerProduct, kMatmul };

// The implementation that was chosen for a product.
struct ProductChoice {
  std::string product;  // "y = x w of 429 x 400"
  // Such as "oneDNN matmul gemm:jit". A backend may also choose "AVX512_BF16" or "F32".
  std::string by;
  // The ways that were tried before and refused, and why: "oneDNN inner product is ref:any". May be
  // empty.
  std::string because;
};

struct OneDnnHooks {
  // Replaces the implementation name that oneDNN reports, so that tests can fake it. If null, the
  // names are not changed.
  std::function<std::string(OneDnnWay way, const std::string& name)> believed_name;
  // Called once for each kind of product and each choice made for it, on the thread that
  // multiplies. May be null.
  std::function<void(const ProductChoice&)> on_choice;
};

// `hooks`, changed so that on_choice reports `next` as the choice wherever all of oneDNN's ways are
// refused.
OneDnnHooks WithNextWay(OneDnnHooks hooks, std::string next);

// Whether `name`, such as "gemm:jit" or "ref:any", names a reference implementation.
bool IsReferenceImplementation(absl::string_view name);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_
