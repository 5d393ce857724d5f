// What a file holds, decided by its first bytes and not by its name: names lie, and a file that is
// mistaken for another kind gives only bad records.
//
// Thread-safe. IsText and SniffFile are functions of their arguments and the file.

#ifndef SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_
#define SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace satrap {

// How a file is read. Several members, frames or streams may follow one another.
enum class Compression { kNone, kGzip, kZstd, kBzip2, kXz };

// How many of a file's first bytes are needed to know what it holds.
inline constexpr size_t kHeadBytes = 512;

// How the file is read. INVALID_ARGUMENT, naming the file and saying what to do, if it has a known
// format that cannot be read: an archive, another compression, a binary table, another encoding of
// text. Other errors if it cannot be opened.
absl::StatusOr<Compression> SniffFile(const std::string& path);

// INVALID_ARGUMENT if `head`, the first bytes of what `path` holds, begins such a format or
// anything compressed. `path` is for the message.
absl::Status CheckIsText(absl::string_view head, const std::string& path);

}  // namespace satrap

#endif  // SATRAP_DATA_LOADER_SOURCE_FILE_KIND_H_
