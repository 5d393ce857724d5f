#include "deploy/retrieve/retrieval.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/base/count_text.h"
#include "common/base/status_macros.h"
#include "common/thread/fork_join_pool.h"
#include "deploy/launcher/process/run_folder.h"
#include "deploy/retrieve/item_ranking.h"
#include "deploy/retrieve/text_lines.h"

namespace satrap {
namespace {

// Reads two files in parallel, line by line: the vectors of one and the names of the other.
class NamedVectors {
 public:
  static absl::StatusOr<NamedVectors> Open(const std::string& names, const std::string& vectors) {
    ASSIGN_OR_RETURN(TextLines name_lines, TextLines::Open(names));
    ASSIGN_OR_RETURN(TextLines vector_lines, TextLines::Open(vectors));
    return NamedVectors(std::move(name_lines), std::move(vector_lines));
  }

  // Returns false at the end of both files. `vector` is empty for a bad record.
  absl::StatusOr<bool> Next(int64_t* dim, std::string* name, std::vector<float>* vector) {
    ASSIGN_OR_RETURN(const bool has_name, names_.Next(&line_));
    ASSIGN_OR_RETURN(const bool has_vector, NextVector(&vectors_, dim, vector));
    if (has_name != has_vector) {
      const TextLines& longer = has_name ? names_ : vectors_;
      const TextLines& shorter = has_name ? vectors_ : names_;
      return longer.Error(absl::StrCat("has no counterpart: ", shorter.path(),
                                       " has fewer lines; line i of one must belong to line i "
                                       "of the other"));
    }
    if (!has_name) return false;
    const std::vector<absl::string_view> fields = FieldsOf(line_);
    if (fields.empty()) return names_.Error("is empty, expected a name");
    *name = std::string(fields[0]);
    return true;
  }

  absl::Status Error(absl::string_view what) const { return names_.Error(what); }
  absl::Status VectorError(absl::string_view what) const { return vectors_.Error(what); }

 private:
  NamedVectors(TextLines names, TextLines vectors)
      : names_(std::move(names)), vectors_(std::move(vectors)) {}

  TextLines names_, vectors_;
  std::string line_;
};

struct UserPairs {
  std::vector<uint32_t> relevant;  // item numbers; those >= the number of items have no vector
  std::vector<uint32_t> seen;      // sorted
  bool found = false;              // the user has a line in the file of users
};

class Retrieval {
 public:
  explicit Retrieval(const RetrievalOptions& options)
      : options_(options),
        pool_(options.threads),
        by_vectors_(options.ks),
        by_popularity_(options.ks),
        most_(*std::max_element(options.ks.begin(), options.ks.end())) {}

  absl::StatusOr<RetrievalResult> Run() {
    RETURN_IF_ERROR(CheckOutput());
    RETURN_IF_ERROR(ReadItems());
    RETURN_IF_ERROR(ReadRelevant());
    if (!options_.seen.empty()) RETURN_IF_ERROR(ReadSeen());
    if (!options_.popularity.empty()) RETURN_IF_ERROR(RankByPopularity());
    RETURN_IF_ERROR(RankForUsers());
    for (const auto& [name, pairs] : users_) {
      if (!pairs.found && !pairs.relevant.empty()) ++result_.users_without_vector;
    }
    result_.users = by_vectors_.users();
    if (result_.users == 0) {
      return absl::FailedPreconditionError(absl::StrCat("no user of ", options_.relevant,
                                                        " has a vector: are the names in ",
                                                        options_.users, " the same?"));
    }
    result_.by_vectors = by_vectors_.Values();
    if (!options_.popularity.empty()) result_.by_popularity = by_popularity_.Values();
    return result_;
  }

 private:
  // Fails if the output, under whatever name, is one of the files to read.
  absl::Status CheckOutput() const {
    for (const std::string& input :
         {options_.user_vectors, options_.item_vectors, options_.users, options_.items,
          options_.relevant, options_.seen, options_.popularity}) {
      std::error_code error;
      if (!std::filesystem::equivalent(options_.output, input, error)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", options_.output, ": it is one of the files to read"));
    }
    // Check this now, not only after all vectors are read.
    return options_.output.empty() ? absl::OkStatus() : CheckWritable(options_.output);
  }

  absl::Status ReadItems() {
    ASSIGN_OR_RETURN(NamedVectors lines, NamedVectors::Open(options_.items, options_.item_vectors));
    std::string name;
    std::vector<float> vector;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines.Next(&result_.dim, &name, &vector));
      if (!more) break;
      if (vector.empty()) {
        ++result_.items_without_vector;
        continue;
      }
      if (!items_.emplace(name, static_cast<uint32_t>(item_names_.size())).second) {
        return lines.Error(absl::StrCat("the item '", name, "' occurs twice"));
      }
      item_names_.push_back(name);
      item_vectors_.insert(item_vectors_.end(), vector.begin(), vector.end());
    }
    result_.items = static_cast<int64_t>(item_names_.size());
    if (result_.items > 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(options_.item_vectors, " has no vectors"));
  }

  absl::Status ReadRelevant() {
    ASSIGN_OR_RETURN(TextLines lines, TextLines::Open(options_.relevant));
    absl::flat_hash_map<std::string, uint32_t> unknown;
    NamePair pair;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, NextPair(&lines, &pair));
      if (!more) break;
      const auto found = items_.find(pair.item);
      uint32_t item = 0;
      if (found != items_.end()) {
        item = found->second;
      } else {
        // An item without a vector is never ranked, so it counts as not found.
        ++result_.unknown_relevant;
        const size_t number = item_names_.size() + unknown.size();
        item = unknown.emplace(pair.item, static_cast<uint32_t>(number)).first->second;
      }
      users_[pair.user].relevant.push_back(item);
    }
    if (!users_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(options_.relevant, " has no pairs of a user and an item"));
  }

  // Reads the pairs of seen items. Leaves out users that will not be ranked.
  absl::Status ReadSeen() {
    ASSIGN_OR_RETURN(TextLines lines, TextLines::Open(options_.seen));
    NamePair pair;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, NextPair(&lines, &pair));
      if (!more) break;
      const auto item = items_.find(pair.item);
      if (item == items_.end()) continue;
      const auto user = users_.find(pair.user);
      if (user != users_.end()) {
        user->second.seen.push_back(item->second);
      } else if (!options_.output.empty()) {
        users_[pair.user].seen.push_back(item->second);
      }
    }
    for (auto& [name, pairs] : users_) {
      std::vector<uint32_t>& seen = pairs.seen;
      std::sort(seen.begin(), seen.end());
      seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
      result_.seen_relevant += std::count_if(
          pairs.relevant.begin(), pairs.relevant.end(),
          [&seen](uint32_t item) { return std::binary_search(seen.begin(), seen.end(), item); });
    }
    return absl::OkStatus();
  }

  absl::Status RankByPopularity() {
    ASSIGN_OR_RETURN(TextLines lines, TextLines::Open(options_.popularity));
    std::vector<int64_t> counts(item_names_.size());
    NamePair pair;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, NextPair(&lines, &pair));
      if (!more) break;
      const auto item = items_.find(pair.item);
      if (item != items_.end()) ++counts[item->second];
    }
    // Use a stable sort, so that items with equal counts keep the order of their file.
    popular_.resize(item_names_.size());
    std::iota(popular_.begin(), popular_.end(), 0);
    std::stable_sort(popular_.begin(), popular_.end(),
                     [&counts](uint32_t a, uint32_t b) { return counts[a] > counts[b]; });
    return absl::OkStatus();
  }

  // A block of users that are ranked together.
  struct Block {
    std::vector<std::string> names;
    std::vector<const UserPairs*> pairs;  // null: the user has no pairs
    std::vector<float> vectors;
  };

  absl::Status RankForUsers() {
    if (options_.output.empty()) {
      return RankForUsers([](absl::string_view) { return absl::OkStatus(); });
    }
    return WriteFileAtomically(options_.output,
                               [this](ByteSink output) { return RankForUsers(output); });
  }

  absl::Status RankForUsers(ByteSink output) {
    ASSIGN_OR_RETURN(NamedVectors lines, NamedVectors::Open(options_.users, options_.user_vectors));
    std::string name;
    std::vector<float> vector;
    int64_t dim = 0;
    Block block;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, lines.Next(&dim, &name, &vector));
      if (!more) break;
      if (dim != result_.dim) {
        return lines.VectorError(absl::StrCat("the vectors of users have ",
                                              Counted(static_cast<uint64_t>(dim), "value"),
                                              ", but those of items have ", result_.dim));
      }
      const auto found = users_.find(name);
      const bool counts = found != users_.end() && !found->second.relevant.empty();
      if (vector.empty() || (!counts && options_.output.empty())) continue;
      UserPairs* const pairs = found == users_.end() ? nullptr : &found->second;
      if (pairs != nullptr && std::exchange(pairs->found, true) && counts) {
        return lines.Error(absl::StrCat("the user '", name, "' occurs twice"));
      }
      block.names.push_back(name);
      block.pairs.push_back(pairs);
      block.vectors.insert(block.vectors.end(), vector.begin(), vector.end());
      if (static_cast<int64_t>(block.names.size()) < options_.block_users) continue;
      RETURN_IF_ERROR(RankBlock(block, output));
      block = Block();
    }
    return RankBlock(block, output);
  }

  absl::Status RankBlock(const Block& block, ByteSink output) {
    const VectorSet users = {block.vectors.data(), static_cast<int64_t>(block.names.size()),
                             result_.dim};
    const VectorSet items = {item_vectors_.data(), result_.items, result_.dim};
    const auto seen = [&block](int64_t user) -> absl::Span<const uint32_t> {
      const UserPairs* const pairs = block.pairs[user];
      if (pairs == nullptr) return {};
      return pairs->seen;
    };
    std::string text;
    const std::vector<RankedItems> ranked = RankItems(users, items, seen, most_, &pool_);
    for (size_t user = 0; user < ranked.size(); ++user) {
      if (block.pairs[user] != nullptr) {
        const std::vector<uint32_t>& relevant = block.pairs[user]->relevant;
        by_vectors_.Add(ranked[user], relevant);
        if (!popular_.empty()) {
          by_popularity_.Add(MostPopular(seen(static_cast<int64_t>(user))), relevant);
        }
      }
      if (options_.output.empty()) continue;
      text += block.names[user];
      for (const uint32_t item : ranked[user]) absl::StrAppend(&text, "\t", item_names_[item]);
      text += '\n';
    }
    return output(text);
  }

  // The most popular items, except those in `seen`, which must be sorted.
  RankedItems MostPopular(absl::Span<const uint32_t> seen) const {
    RankedItems ranked;
    for (const uint32_t item : popular_) {
      if (ranked.size() == static_cast<size_t>(most_)) break;
      if (!std::binary_search(seen.begin(), seen.end(), item)) ranked.push_back(item);
    }
    return ranked;
  }

  const RetrievalOptions& options_;
  ForkJoinPool pool_;
  RetrievalMetrics by_vectors_, by_popularity_;
  const int most_;  // the length of a ranked list
  absl::flat_hash_map<std::string, uint32_t> items_;
  std::vector<std::string> item_names_;
  std::vector<float> item_vectors_;
  absl::flat_hash_map<std::string, UserPairs> users_;
  std::vector<uint32_t> popular_;  // items, by falling count
  RetrievalResult result_;
};

}  // namespace

absl::StatusOr<RetrievalResult> Retrieve(const RetrievalOptions& options) {
  return Retrieval(options).Run();
}

}  // namespace satrap
