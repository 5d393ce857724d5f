#include "deploy/coordinator/rendezvous_entries.h"

#include "absl/strings/str_cat.h"

namespace satrap {

absl::StatusOr<StoreSetAnswer> RendezvousEntries::Set(const StoreSetRequest& request) {
  const auto [entry, inserted] = values_.try_emplace(request.key(), request.value());
  if (!inserted && entry->second != request.value()) {
    return absl::AlreadyExistsError(absl::StrCat("'", request.key(), "' has another value"));
  }
  return StoreSetAnswer();
}

StoreGetAnswer RendezvousEntries::Get(const StoreGetRequest& request) const {
  StoreGetAnswer answer;
  const auto entry = values_.find(request.key());
  answer.set_found(entry != values_.end());
  if (answer.found()) answer.set_value(entry->second);
  return answer;
}

}  // namespace satrap
