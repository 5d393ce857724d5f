// Finds out what a file contains by its first bytes, not by its name. Names may be wrong, and if a
// file is mistaken for another kind, all its records are bad.
//
// Thread-safe. IsText and SniffFile depend only on their arguments and the file.

#ifndef SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_
#define SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

// How a file is compressed. A file may consist of several members, frames or streams.
enum class Compression { kNone, kGzip, kZstd, kBzip2, kXz };

// The number of a file's first bytes that are needed to find out what it contains.
inline constexpr size_t kHeadBytes = 512;

// The compression of a file. INVALID_ARGUMENT, naming the file and saying what to do, if it has a
// known format that cannot be read: an archive, another compression, a binary table, another text
// encoding. Other errors if it cannot be opened.
absl::StatusOr<Compression> SniffFile(const std::string& path);

// INVALID_ARGUMENT if `head` is the beginning of a format that cannot be read, or of compressed
// data. `head` is the first bytes of the content of `path`, which is only for the message.
absl::Status CheckIsText(absl::string_view head, const std::string& path);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_
