#include "nn_worker/device/cuda/dynamic_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace satrap {

absl::StatusOr<DynamicLibrary> DynamicLibrary::Open(const std::string& name) {
  // RTLD_LOCAL: the library's symbols must not replace those of other libraries. RTLD_NOW: an
  // incompatible library is detected here instead of in the middle of a step.
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot load ", name, ": ", dlerror(),
                     "; install it, or name its folder in LD_LIBRARY_PATH"));
  }
  return DynamicLibrary(name, handle);
}

absl::Status DynamicLibrary::FindAddress(const char* symbol, void** address) const {
  *address = dlsym(handle_, symbol);
  if (*address != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(name_, " has no ", symbol, ": it is not the version that this program needs"));
}

}  // namespace satrap
