#include "nn_worker/backend/cpu/onednn_choice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace satrap {

OneDnnHooks WithNextWay(OneDnnHooks hooks, std::string next) {
  if (hooks.on_choice == nullptr) return hooks;
  hooks.on_choice = [on_choice = std::move(hooks.on_choice),
                     next = std::move(next)](ProductChoice choice) {
    if (choice.by.empty()) choice.by = next;
    on_choice(choice);
  };
  return hooks;
}

bool IsReferenceImplementation(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, ':');
  return std::any_of(parts.begin(), parts.end(),
                     [](absl::string_view part) { return absl::StartsWith(part, "ref"); });
}

}  // namespace satrap
