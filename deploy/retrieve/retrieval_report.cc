#include "deploy/retrieve/retrieval_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "deploy/report/json.h"

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

void WriteRows(const char* ranking, const std::vector<RetrievalValues>& values, JsonWriter* json) {
  for (const RetrievalValues& of_k : values) {
    json->BeginObject();
    json->StringField("ranking", ranking);
    json->Field("k", int64_t{of_k.k});
    json->Field("recall", of_k.recall);
    json->Field("ndcg", of_k.ndcg);
    json->Field("hit_rate", of_k.hit_rate);
    json->Field("mrr", of_k.mrr);
    json->EndObject();
  }
}

}  // namespace

std::string RetrievalTable(const RetrievalResult& result) {
  std::string table = absl::StrCat(result.users, " users with relevant items, ", result.items,
                                   " items, ", result.dim, " values a vector\n");
  absl::StrAppendFormat(&table, "%-10s %6s %9s %9s %9s %9s\n", "ranking", "k", "Recall", "NDCG",
                        "HitRate", "MRR");
  AppendRows(kVectors, result.by_vectors, &table);
  AppendRows(kPopularity, result.by_popularity, &table);
  return table;
}

std::string RetrievalJson(const RetrievalResult& result) {
  JsonWriter json;
  json.BeginObject();
  json.Field("users", result.users);
  json.Field("items", result.items);
  json.Field("dim", result.dim);
  json.Key("rankings");
  json.BeginArray();
  WriteRows(kVectors, result.by_vectors, &json);
  WriteRows(kPopularity, result.by_popularity, &json);
  json.EndArray();
  json.EndObject();
  return json.text() + "\n";
}

std::vector<std::string> RetrievalWarnings(const RetrievalResult& result) {
  std::vector<std::string> warnings;
  const auto warn = [&warnings](int64_t count, const char* what) {
    if (count > 0) warnings.push_back(absl::StrCat(count, " ", what));
  };
  warn(result.users_without_vector, "users with relevant items have no vector, and do not count");
  warn(result.items_without_vector, "item vectors are nan, and are not ranked");
  warn(result.unknown_relevant,
       "relevant pairs have an item without a vector, and count as not found");
  warn(result.seen_relevant,
       "relevant pairs are seen pairs, too, which are not ranked: they count as not found");
  return warnings;
}

}  // namespace satrap
