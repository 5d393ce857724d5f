// The name of this machine's CPU. Benchmarks print it with their figures, because those depend on
// the CPU.

#ifndef SATRAP_COMMON_BASE_CPU_NAME_H_
#define SATRAP_COMMON_BASE_CPU_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace satrap {

// For example "AMD EPYC (family 26, model 2, stepping 1), 2 CPUs". Family, model and stepping are
// included because virtual machines often report no more than the brand. Contains no quotes and no
// backslashes, so that it can be printed into JSON. "unknown" if the system does not say.
std::string CpuName();

// Like CpuName, but takes the text of /proc/cpuinfo as an argument.
std::string CpuNameOf(absl::string_view cpuinfo);

}  // namespace satrap

#endif  // SATRAP_COMMON_BASE_CPU_NAME_H_
