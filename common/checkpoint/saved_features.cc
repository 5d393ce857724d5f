#include "common/checkpoint/saved_features.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/config/job_facts.h"
#include "common/config/warm_start.h"
#include "common/numeric/hash.h"

namespace satrap {
namespace {

// A field of CsvFormat that decides which bytes of a record's text become an id.
struct CsvIdField {
  const char* name;
  bool of_lists;  // only matters for MULTI_ID columns
};
// Fields have names because another build may have other fields: only fields that both sides have
// are compared.
constexpr CsvIdField kCsvIdFields[] = {{"trim", false}, {"trim_lists", true}};

void AddRule(const std::string& field, std::string value, SavedFeature* saved) {
  IdRule* rule = saved->add_rules();
  rule->set_field(field);
  rule->set_value(std::move(value));
}

template <typename Values>
std::string HashOf(const Values& values) {
  // Writes each value after its length, so that different lists give different texts.
  std::string text;
  for (const auto& value : values) {
    const std::string one = absl::StrCat(value);
    absl::StrAppend(&text, one.size(), ":", one);
  }
  return absl::StrFormat("%016x", Xxh64(text));
}

std::string VocabularyText(const ColumnConfig& column) {
  if (column.vocabulary().empty()) return "none";
  return absl::StrCat(column.vocabulary_size(), " words, hash ", HashOf(column.vocabulary()));
}

const ColumnConfig* FindColumn(const CsvFormat& csv, const std::string& name) {
  for (const ColumnConfig& column : csv.columns()) {
    if (column.name() == name) return &column;
  }
  return nullptr;
}

void AddCsvRules(const CsvFormat& csv, const FeatureConfig& feature, SavedFeature* saved) {
  const ColumnConfig* const column = FindColumn(csv, ColumnOf(feature));
  if (feature.cross_columns().empty() && column != nullptr) {
    AddRule("vocabulary", VocabularyText(*column), saved);
  }
  for (const std::string& crossed : feature.cross_columns()) {
    const ColumnConfig* const part = FindColumn(csv, crossed);
    if (part != nullptr) AddRule("vocabulary of " + crossed, VocabularyText(*part), saved);
  }
  const bool is_list = column != nullptr && column->kind() == ColumnConfig::MULTI_ID;
  for (const CsvIdField& id_field : kCsvIdFields) {
    const auto* const field = csv.GetDescriptor()->FindFieldByName(id_field.name);
    if (field == nullptr || (id_field.of_lists && !is_list)) continue;
    AddRule(id_field.name, csv.GetReflection()->GetBool(csv, field) ? "true" : "false", saved);
  }
}

SavedFeature SavedFeatureOf(const DataConfig& data, const FeatureConfig& feature) {
  SavedFeature saved;
  saved.set_feature(feature.name());
  saved.set_table(feature.table());
  saved.set_id_space(IdSpaceOf(feature));
  if (feature.has_bucketize()) {
    AddRule("bucketize",
            absl::StrCat(feature.bucketize().boundaries_size(), " boundaries, hash ",
                         HashOf(feature.bucketize().boundaries())),
            &saved);
    return saved;
  }
  if (feature.has_criteo_x4()) {
    AddRule("criteo_x4", "true", &saved);
    return saved;
  }
  if (!feature.cross_columns().empty()) {
    AddRule("cross_columns", absl::StrJoin(feature.cross_columns(), ", "), &saved);
  }
  // Messages of a topic may hold text or numbers, so they get no rule "ids".
  if (data.has_csv() || data.has_criteo_tsv()) AddRule("ids", "hashed text", &saved);
  if (data.has_libsvm() || data.has_libffm() || data.has_synthetic()) {
    AddRule("ids", "numbers", &saved);
  }
  if (data.has_csv()) AddCsvRules(data.csv(), feature, &saved);
  return saved;
}

// The model's feature whose rows `own` reads: the one with the same table and id space. If there
// are several, prefers the one that also has the same name. Null if there is none.
const SavedFeature* FindJoined(const CheckpointManifest& model, const SavedFeature& own) {
  const SavedFeature* found = nullptr;
  for (const SavedFeature& saved : model.features()) {
    if (saved.table() != own.table() || saved.id_space() != own.id_space()) continue;
    if (found == nullptr || saved.feature() == own.feature()) found = &saved;
  }
  return found;
}

void CompareRules(const SavedFeature& own, const SavedFeature& saved,
                  std::vector<std::string>* warnings) {
  for (const IdRule& rule : own.rules()) {
    for (const IdRule& before : saved.rules()) {
      if (before.field() != rule.field() || before.value() == rule.value()) continue;
      warnings->push_back(absl::StrCat("feature ", own.feature(), ": ", rule.field(), " is ",
                                       rule.value(), " here, but was ", before.value(),
                                       " for the rows of the model's table '", own.table(),
                                       "', so the feature's ids find other rows or none; set ",
                                       rule.field(), " as in the model's job"));
    }
  }
}

std::string OtherSpaceText(const SavedFeature& own, const std::set<std::string>& unread) {
  std::string text = absl::StrCat("feature ", own.feature(), ": the model's table '", own.table(),
                                  "' has no rows of the id space '", own.id_space(),
                                  "', so the feature finds no rows");
  if (unread.empty()) return text;
  absl::StrAppend(&text, "; the model has rows of '", absl::StrJoin(unread, "', '"),
                  "', which no feature of this job reads: to find them, set the feature's id_space "
                  "(data.features, `id_space: \"",
                  *unread.begin(), "\"`)");
  return text;
}

}  // namespace

google::protobuf::RepeatedPtrField<SavedFeature> SavedFeaturesOf(const JobConfig& job) {
  google::protobuf::RepeatedPtrField<SavedFeature> features;
  for (const FeatureConfig& feature : job.data().features()) {
    *features.Add() = SavedFeatureOf(job.data(), feature);
  }
  return features;
}

TableFit FitOf(const CheckpointManifest& model, const JobConfig& job, const std::string& table) {
  TableFit fit;
  if (model.features().empty()) return fit;
  const auto features = SavedFeaturesOf(job);
  // Id spaces of the model's table that the job does not read.
  std::set<std::string> unread;
  for (const SavedFeature& saved : model.features()) {
    if (saved.table() == table) unread.insert(saved.id_space());
  }
  for (const SavedFeature& own : features) {
    if (own.table() == table) unread.erase(own.id_space());
  }
  for (const SavedFeature& own : features) {
    if (own.table() != table) continue;
    const SavedFeature* const saved = FindJoined(model, own);
    if (saved == nullptr) {
      fit.features_without_rows.push_back(own.feature());
      fit.warnings.push_back(OtherSpaceText(own, unread));
    } else {
      fit.features.push_back(own.feature());
      CompareRules(own, *saved, &fit.warnings);
    }
  }
  return fit;
}

std::vector<std::string> IdWarnings(const CheckpointManifest& model, const JobConfig& job) {
  std::vector<std::string> warnings;
  for (const TableConfig& table : job.tables()) {
    bool is_taken = false;
    for (const SavedTable& saved : model.tables()) is_taken |= saved.name() == table.name();
    if (job.action() == JobConfig::TRAIN && !TakesName(job.warm_start(), table.name())) {
      is_taken = false;
    }
    if (!is_taken) continue;
    for (std::string& warning : FitOf(model, job, table.name()).warnings) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

}  // namespace satrap
