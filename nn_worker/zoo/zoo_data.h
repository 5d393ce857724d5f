// The text of the zoo's files; the source is generated from them (BUILD, "zoo_data_source").

#ifndef SATRAP_NN_WORKER_ZOO_ZOO_DATA_H_
#define SATRAP_NN_WORKER_ZOO_ZOO_DATA_H_

#include "absl/types/span.h"

namespace satrap {

struct ZooFile {
  const char* name;  // without .textproto
  const char* text;
};

// Sorted by name.
absl::Span<const ZooFile> ZooFiles();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_ZOO_ZOO_DATA_H_
