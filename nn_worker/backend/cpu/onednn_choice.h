// Which of oneDNN's implementations multiplies matrices. oneDNN makes every product that it is
// asked for. Where it has no fast way, it uses loops that take a thousand times as long ("ref"),
// and says so only in the name of the implementation.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_
#define SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// The ways to make a product, in the order in which they are tried.
enum class OneDnnWay { kInnerProduct, kMatmul };

// What was chosen for a product.
struct ProductChoice {
  std::string product;  // "y = x w of 429 x 400"
  // "oneDNN matmul gemm:jit"; of a backend's choice also "AVX512_BF16" or "F32".
  std::string by;
  // What was refused before it: "oneDNN inner product is ref:any". May be empty.
  std::string because;
};

struct OneDnnHooks {
  // Replaces the name that oneDNN gives an implementation; null: names stay. Tests fake answers
  // with it.
  std::function<std::string(OneDnnWay way, const std::string& name)> believed_name;
  // Gets the first product of each kind for which something was chosen, on the thread that
  // multiplies. May be null.
  std::function<void(const ProductChoice&)> on_choice;
};

// `hooks`, with an on_choice that gets `next` as the choice where oneDNN takes nothing.
OneDnnHooks WithNextWay(OneDnnHooks hooks, std::string next);

// Whether `name`, as in "gemm:jit" or "ref:any", is of a reference implementation.
bool IsReferenceImplementation(absl::string_view name);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_BACKEND_CPU_ONEDNN_CHOICE_H_
