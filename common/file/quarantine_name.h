// The names of the quarantine files, which data loaders write and others read (docs/formats.md).

#ifndef SATRAP_COMMON_FILE_QUARANTINE_NAME_H_
#define SATRAP_COMMON_FILE_QUARANTINE_NAME_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"

namespace satrap {

// The name that both files of a loader have in a generation, without the folder and the suffix
// (.txt, .tsv).
inline std::string QuarantineName(uint64_t generation, int loader) {
  return absl::StrFormat("g%04d-loader-%d", generation, loader);
}

}  // namespace satrap

#endif  // SATRAP_COMMON_FILE_QUARANTINE_NAME_H_
