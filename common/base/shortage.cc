#include "common/base/shortage.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "common/base/check.h"

namespace satrap {
namespace {

constexpr char kPayload[] = "satrap/shortage";

// One handler for the whole process, like that of std::terminate.
std::atomic<ShortageHandler>& Handler() {
  static std::atomic<ShortageHandler> handler = nullptr;
  return handler;
}

}  // namespace

Shortage ShortageOfErrno(int error) {
  switch (error) {
    case ENOMEM:
      return Shortage::kMemory;
    case EAGAIN:
      return Shortage::kProcesses;
    case EMFILE:
    case ENFILE:
      return Shortage::kDescriptors;
    case EADDRNOTAVAIL:
    case ENETDOWN:
    case ENETUNREACH:
    case EAFNOSUPPORT:
      return Shortage::kAddress;
    default:
      return Shortage::kNone;
  }
}

absl::Status MarkShortage(absl::Status status, Shortage shortage) {
  CHECK(!status.ok());
  if (shortage != Shortage::kNone) {
    status.SetPayload(kPayload, absl::Cord(absl::StrCat(static_cast<int>(shortage))));
  }
  return status;
}

Shortage ShortageOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  int shortage = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &shortage)) {
    return Shortage::kNone;
  }
  return static_cast<Shortage>(shortage);
}

void EndForWantOf(Shortage shortage, absl::string_view what) {
  const std::string text(what);
  if (const ShortageHandler handler = Handler(); handler != nullptr) handler(shortage, text);
  std::fprintf(stderr, "error: %s\n", text.c_str());
  std::abort();
}

void SetShortageHandler(ShortageHandler handler) { Handler() = handler; }

}  // namespace satrap
