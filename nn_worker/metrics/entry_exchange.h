// Sends each entry of a metric to the rank that judges it. Entries are sent in pieces, so only a
// small share of them is in flight at any time, and received entries use the memory of entries that
// were sent.
//
// Thread-safe: the function depends only on its arguments.

#ifndef SATRAP_NN_WORKER_METRICS_ENTRY_EXCHANGE_H_
#define SATRAP_NN_WORKER_METRICS_ENTRY_EXCHANGE_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "nn_worker/collective/collective.h"
#include "nn_worker/metrics/sorted_blocks.h"

namespace satrap {

// A piece has 1/64 of the entries of the rank that has the most entries, but stays within these
// limits.
inline constexpr size_t kLeastPieceEntries = 1 << 10;
inline constexpr size_t kMostPieceEntries = 1 << 16;

// Collective. When it returns, `*entries` of a rank holds the entries, from all ranks, whose
// owner(entry) is that rank. `received` is empty, and joins entries in the same way as `*entries`.
// Errors are the collective's, or INVALID_ARGUMENT if another rank sends bytes that are not whole
// entries.
template <typename Entry, typename Owner>
absl::Status ExchangeEntries(Collective* collective, Owner owner, SortedBlocks<Entry> received,
                             SortedBlocks<Entry>* entries) {
  const int ranks = collective->size();
  if (ranks == 1) return absl::OkStatus();
  std::vector<double> sizes(ranks, 0);
  sizes[collective->rank()] = static_cast<double>(entries->size());
  RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sizes)));
  const double most = *std::max_element(sizes.begin(), sizes.end());
  const size_t piece =
      std::clamp(static_cast<size_t>(most / 64), kLeastPieceEntries, kMostPieceEntries);
  // Every rank makes as many exchanges as the rank with the most entries needs.
  for (double given = 0; given < most; given += static_cast<double>(piece)) {
    std::vector<std::string> for_ranks(ranks);
    entries->TakeSome(piece, [&](const Entry& entry) {
      for_ranks[owner(entry)].append(reinterpret_cast<const char*>(&entry), sizeof(entry));
    });
    ASSIGN_OR_RETURN(const std::vector<std::string> from_ranks,
                     collective->AllToAllBytes(for_ranks));
    for (size_t rank = 0; rank < from_ranks.size(); ++rank) {
      const std::string& bytes = from_ranks[rank];
      if (bytes.size() % sizeof(Entry) != 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("evaluation: nn_worker ", rank, " sent ", bytes.size(),
                         " bytes of samples, which is not a multiple of the ", sizeof(Entry),
                         " bytes of a sample"));
      }
      for (size_t at = 0; at < bytes.size(); at += sizeof(Entry)) {
        Entry entry;
        std::memcpy(&entry, bytes.data() + at, sizeof(entry));
        received.Add(entry);
      }
    }
  }
  *entries = std::move(received);
  return absl::OkStatus();
}

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_METRICS_ENTRY_EXCHANGE_H_
