// A shared library that is opened when it is needed, so that a program starts without it. It stays
// open until the process ends, because its threads and tables may outlive the code that opened it.
//
// Thread-safe.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace satrap {

class DynamicLibrary {
 public:
  // `name`: the file name that the linker looks for, such as "libnccl.so.2". FAILED_PRECONDITION if
  // it is not found or cannot be loaded; the message says where the library is searched for.
  static absl::StatusOr<DynamicLibrary> Open(const std::string& name);

  // Sets *function to the library's function of this name. FAILED_PRECONDITION if there is none.
  //   REQUIRES: `Function` is the type of that function
  template <typename Function>
  absl::Status Find(const char* symbol, Function** function) const {
    void* found = nullptr;
    absl::Status status = FindAddress(symbol, &found);
    *function = reinterpret_cast<Function*>(found);
    return status;
  }

 private:
  DynamicLibrary(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  absl::Status FindAddress(const char* symbol, void** address) const;

  std::string name_;
  void* handle_;
};

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_DYNAMIC_LIBRARY_H_
