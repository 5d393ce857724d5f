// Checks names that Kubernetes must accept, and names of runs, from which the names of a run's
// objects are made.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_COMMON_CONFIG_KUBERNETES_NAMES_H_
#define SATRAP_COMMON_CONFIG_KUBERNETES_NAMES_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace satrap {

// The name of a StatefulSet may have at most 52 letters, because its controller appends a hash to
// it for a label of the pods. The longest suffix after a run's name, "-embedding-worker", takes 17
// of them.
inline constexpr size_t kLongestRunName = 35;
inline constexpr char kRunNameRule[] =
    "must have at most 35 lower-case letters, digits and '-', begin with a letter, and not end "
    "with '-' or '-members'";
inline constexpr char kObjectNameRule[] =
    "must be a Kubernetes object name (RFC 1123: lower-case letters, digits, '-' and '.')";

// The name of a run in a cluster. It begins with a letter, because the run's Service must. It does
// not end with "-members": a run "x-members" would have a Job of the same name as one of the Jobs
// of a run "x".
bool IsRunName(absl::string_view name);
// A label of RFC 1123, such as the name of a namespace.
bool IsDnsLabel(absl::string_view name);
// A subdomain of RFC 1123, which most names of objects are.
bool IsObjectName(absl::string_view name);
// The key of a label, a taint or a resource: "kubernetes.io/arch", "disk".
bool IsLabelKey(absl::string_view key);
// The value of a label or of a taint. It may be empty.
bool IsLabelValue(absl::string_view value);

}  // namespace satrap

#endif  // SATRAP_COMMON_CONFIG_KUBERNETES_NAMES_H_
