#include "common/rpc/sign_of_life.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace satrap::rpc {
namespace {

constexpr char kSignOfLife[] = "satrap/sign_of_life_ago_us";

}  // namespace

absl::Status MarkSignOfLife(absl::Status lost, int64_t ago_us) {
  CHECK(!lost.ok() && ago_us >= 0) << lost.ToString() << " " << ago_us;
  lost.SetPayload(kSignOfLife, absl::Cord(absl::StrCat(ago_us)));
  return lost;
}

absl::optional<int64_t> SignOfLifeAgoUs(const absl::Status& status) {
  const absl::optional<absl::Cord> mark = status.GetPayload(kSignOfLife);
  int64_t ago_us;
  if (!mark.has_value() || !absl::SimpleAtoi(std::string(*mark), &ago_us)) return absl::nullopt;
  return ago_us;
}

}  // namespace satrap::rpc
