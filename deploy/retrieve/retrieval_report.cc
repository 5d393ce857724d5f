#include "deploy/retrieve/retrieval_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/count_text.h"
#include "common/json/json.h"
#include "proto/benchmark.pb.h"

namespace satrap {
namespace {

constexpr char kVectors[] = "vectors";
constexpr char kPopularity[] = "popularity";

void AppendRows(const char* ranking, const std::vector<RetrievalValues>& values,
                std::string* table) {
  for (const RetrievalValues& of_k : values) {
    absl::StrAppendFormat(table, "%-10s %6d %9.5f %9.5f %9.5f %9.5f\n", ranking, of_k.k,
                          of_k.recall, of_k.ndcg, of_k.hit_rate, of_k.mrr);
  }
}

void AddRows(const char* ranking, const std::vector<RetrievalValues>& values, RetrievalLine* line) {
  for (const RetrievalValues& of_k : values) {
    RetrievalLine::Ranking* const row = line->add_rankings();
    row->set_ranking(ranking);
    row->set_k(of_k.k);
    row->set_recall(of_k.recall);
    row->set_ndcg(of_k.ndcg);
    row->set_hit_rate(of_k.hit_rate);
    row->set_mrr(of_k.mrr);
  }
}

}  // namespace

std::string RetrievalTable(const RetrievalResult& result) {
  std::string table =
      absl::StrCat(Counted(static_cast<uint64_t>(result.users), "user"), " with relevant items, ",
                   Counted(static_cast<uint64_t>(result.items), "item"), ", ",
                   Counted(static_cast<uint64_t>(result.dim), "value"), " a vector\n");
  absl::StrAppendFormat(&table, "%-10s %6s %9s %9s %9s %9s\n", "ranking", "k", "Recall", "NDCG",
                        "HitRate", "MRR");
  AppendRows(kVectors, result.by_vectors, &table);
  AppendRows(kPopularity, result.by_popularity, &table);
  return table;
}

std::string RetrievalJson(const RetrievalResult& result) {
  RetrievalLine line;
  line.set_users(result.users);
  line.set_items(result.items);
  line.set_dim(result.dim);
  AddRows(kVectors, result.by_vectors, &line);
  AddRows(kPopularity, result.by_popularity, &line);
  return JsonOf(line) + "\n";
}

std::vector<std::string> RetrievalWarnings(const RetrievalResult& result) {
  std::vector<std::string> warnings;
  const auto warn = [&warnings](int64_t count, const char* one, const char* many) {
    if (count > 0) warnings.push_back(Counted(static_cast<uint64_t>(count), one, many));
  };
  warn(result.users_without_vector, "user with relevant items has no vector, and does not count",
       "users with relevant items have no vector, and do not count");
  warn(result.items_without_vector, "item vector is nan, and is not ranked",
       "item vectors are nan, and are not ranked");
  warn(result.unknown_relevant,
       "relevant pair has an item without a vector, and counts as not found",
       "relevant pairs have an item without a vector, and count as not found");
  warn(result.seen_relevant,
       "relevant pair is a seen pair, too, which is not ranked: it counts as not found",
       "relevant pairs are seen pairs, too, which are not ranked: they count as not found");
  return warnings;
}

}  // namespace satrap
