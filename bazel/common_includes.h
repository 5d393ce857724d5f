// The headers that most sources of libraries include, for precompiled.bzl. No source includes this
// file: each source itself includes what it uses, and CI compiles the changed sources without this
// file (`./satrap includes`).

#ifndef SATRAP_BAZEL_COMMON_INCLUDES_H_
#define SATRAP_BAZEL_COMMON_INCLUDES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "proto/control.pb.h"
#include "proto/data.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/kafka.pb.h"
#include "proto/metrics.pb.h"
#include "proto/model.pb.h"
#include "proto/optimizer.pb.h"
#include "proto/position.pb.h"
#include "proto/schedule.pb.h"
#include "proto/table.pb.h"

#endif  // SATRAP_BAZEL_COMMON_INCLUDES_H_
