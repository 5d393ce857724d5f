#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/config/data_streams.h"
#include "common/config/job_facts.h"
#include "common/config/record_schema.h"
#include "common/config/validate/validate_job.h"

namespace satrap {
namespace {

// Shortens the list, because a wide file has hundreds of columns.
std::string FewNames(std::vector<std::string> names) {
  if (names.empty()) return "none";
  if (names.size() > 40) {
    names.resize(40);
    names.push_back("...");
  }
  return absl::StrJoin(names, ", ");
}

// The columns that features may read, as text for an error.
std::string IdColumns(const RecordSchema& schema) {
  std::vector<std::string> names = schema.ids;
  names.insert(names.end(), schema.id_lists.begin(), schema.id_lists.end());
  return FewNames(std::move(names));
}

// The names come from the .proto file, so that an error also names formats that are added later.
std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  const auto* formats = DataConfig::descriptor()->FindOneofByName("format");
  for (int i = 0; i < formats->field_count(); ++i) names.push_back(formats->field(i)->name());
  return names;
}

void ValidateNumericLabel(const ColumnConfig& column, const std::string& path, Problems* problems) {
  if (column.kind() != ColumnConfig::LABEL) {
    problems->Add(path + ".numeric_label", absl::StrCat("is for columns of kind LABEL, got ",
                                                        ColumnConfig::Kind_Name(column.kind())));
  }
  if (column.vocabulary_size() + column.positive_values_size() + column.negative_values_size() >
      0) {
    problems->Add(path + ".numeric_label",
                  "excludes vocabulary, positive_values and negative_values");
  }
}

// Checks the columns of `csv` or `record`, at `columns_path`. `tasks`: whether the job has
// model.tasks. If it has none, there must be exactly one LABEL column.
void ValidateColumns(const google::protobuf::RepeatedPtrField<ColumnConfig>& columns,
                     const std::string& columns_path, bool tasks, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_map<int, int> count_of_kind;
  for (int i = 0; i < columns.size(); ++i) {
    const ColumnConfig& column = columns.Get(i);
    const std::string path = absl::StrCat(columns_path, "[", i, "]");
    ++count_of_kind[column.kind()];
    // Features refer to columns by name; only an ignored column needs none.
    if (column.name().empty() && column.kind() != ColumnConfig::IGNORE) {
      problems->Add(path, "has no name");
    }
    if (!column.name().empty() && !names.insert(column.name()).second) {
      problems->Add(path, absl::StrCat("the name '", column.name(), "' is taken"));
    }
    if (column.kind() == ColumnConfig::MULTI_ID && column.separator().size() != 1) {
      problems->Add(absl::StrCat(path, ".separator"),
                    absl::StrCat("must be one byte, got '", column.separator(), "'"));
    }
    if (column.value_separator().size() > 1) {
      problems->Add(
          absl::StrCat(path, ".value_separator"),
          absl::StrCat("must be one byte or empty, got '", column.value_separator(), "'"));
    }
    if (column.numeric_label()) ValidateNumericLabel(column, path, problems);
  }
  const int labels = count_of_kind[ColumnConfig::LABEL];
  if (tasks ? labels == 0 : labels != 1) {
    problems->Add(columns_path,
                  absl::StrCat(tasks ? "need a LABEL, got " : "need exactly one LABEL, got ",
                               labels, labels > 1 ? "; model.tasks can name more" : ""));
  }
  // A record has only one value of each of these kinds, so a second column would silently replace
  // the first.
  for (const auto kind : {ColumnConfig::WEIGHT, ColumnConfig::GROUP, ColumnConfig::TIME}) {
    if (count_of_kind[kind] <= 1) continue;
    problems->Add(columns_path, absl::StrCat("take at most one ", ColumnConfig::Kind_Name(kind),
                                             ", got ", count_of_kind[kind]));
  }
}

void ValidateCsv(const CsvFormat& csv, bool tasks, Problems* problems) {
  if (csv.separator().size() != 1) {
    problems->Add("data.csv.separator",
                  absl::StrCat("must be one byte, got '", csv.separator(), "'"));
  } else if (csv.separator() == "\n") {
    problems->Add("data.csv.separator", "must not be the end of a line");
  } else if (csv.separator() == "\"" && QuotesOf(csv)) {
    problems->Add("data.csv.separator",
                  "must not be '\"', which encloses fields unless data.csv.quotes is false");
  }
  if (csv.multiline() && !QuotesOf(csv)) {
    problems->Add("data.csv.multiline",
                  csv.has_quotes()
                      ? "needs data.csv.quotes"
                      : "needs `data.csv.quotes: true`, which is not the default of files "
                        "separated by tabs");
  }
  ValidateColumns(csv.columns(), "data.csv.columns", tasks, problems);
}

// Checks the labels of libsvm and libffm. Both messages have the same fields for them.
template <typename Format>
void ValidateTokenLabels(const Format& format, const std::string& path, Problems* problems) {
  if (format.classes().empty()) return;
  if (format.numeric_label()) problems->Add(path + ".numeric_label", "excludes classes");
  if (format.classes_size() == 1) problems->Add(path + ".classes", "must be two or more, got 1");
  absl::flat_hash_set<float> seen;
  for (int i = 0; i < format.classes_size(); ++i) {
    if (seen.insert(format.classes(i)).second) continue;
    problems->Add(absl::StrCat(path, ".classes[", i, "]"),
                  absl::StrCat(format.classes(i), " is taken"));
  }
}

// Refuses settings for reading text, because a Record holds numbers and bytes in place of text.
void ValidateRecord(const RecordFormat& record, bool tasks, Problems* problems) {
  ValidateColumns(record.columns(), "data.record.columns", tasks, problems);
  for (int i = 0; i < record.columns_size(); ++i) {
    const ColumnConfig& column = record.columns(i);
    const std::pair<const char*, int> of_text[] = {
        {"missing_values", column.missing_values_size()},
        {"positive_values", column.positive_values_size()},
        {"negative_values", column.negative_values_size()},
        {"vocabulary", column.vocabulary_size()},
        {"test_vocabulary", column.test_vocabulary_size()},
    };
    for (const auto& [field, size] : of_text) {
      if (size == 0) continue;
      problems->Add(absl::StrCat("data.record.columns[", i, "].", field),
                    absl::StrCat("must be empty, because a Record holds no text, got ", size));
    }
  }
}

void ValidateSynthetic(const SyntheticFormat& synthetic, Problems* problems) {
  if (synthetic.interacting_features() <= synthetic.vocabulary_sizes_size()) return;
  problems->Add(
      "data.synthetic.interacting_features",
      absl::StrCat("must be at most ", synthetic.vocabulary_sizes_size(),
                   ", the number of vocabulary_sizes, got ", synthetic.interacting_features()));
}

// A transform that divides by zero, or a missing value that is not finite, would reach the dense
// network as NaN or Inf, and every step would be skipped.
void ValidateTransform(const NumericConfig& numeric, const std::string& path, Problems* problems) {
  if (numeric.has_clamp() && numeric.clamp() == 0) {
    problems->Add(absl::StrCat(path, ".clamp"), "must be above 0 or be left out");
  }
  switch (numeric.transform()) {
    case NumericConfig::IDENTITY:
    case NumericConfig::LOG1P:
      break;
    case NumericConfig::MIN_MAX:
      problems->Finite(absl::StrCat(path, ".min"), numeric.min());
      problems->Finite(absl::StrCat(path, ".max"), numeric.max());
      if (numeric.max() <= numeric.min()) {
        problems->Add(path, absl::StrCat("max must be above min, got ", numeric.max(), " and ",
                                         numeric.min()));
      }
      break;
    case NumericConfig::STANDARDISE:
      problems->Finite(absl::StrCat(path, ".mean"), numeric.mean());
      problems->Positive(absl::StrCat(path, ".stddev"), numeric.stddev());
      break;
  }
}

void ValidateNumerics(const DataConfig& data, const RecordSchema& schema, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  for (int i = 0; i < data.numerics_size(); ++i) {
    const NumericConfig& numeric = data.numerics(i);
    const std::string path = absl::StrCat("data.numerics[", i, "]");
    if (numeric.name().empty() || !names.insert(numeric.name()).second) {
      problems->Add(path, absl::StrCat("needs a name of its own, got '", numeric.name(), "'"));
    }
    if (schema.IndexOfNumeric(ColumnOf(numeric)) < 0) {
      problems->Add(path, absl::StrCat("no numeric column '", ColumnOf(numeric), "'; there are ",
                                       FewNames(schema.numerics)));
    }
    ValidateTransform(numeric, path, problems);
  }
}

// Checks a cross, which makes one id out of one id of each of its columns.
void ValidateCross(const FeatureConfig& feature, const std::string& path,
                   const RecordSchema& schema, Problems* problems) {
  const std::string field = absl::StrCat(path, ".cross_columns");
  problems->Range(absl::StrCat(field, " (how many)"), feature.cross_columns_size(), 2, 16);
  for (const std::string& column : feature.cross_columns()) {
    if (!schema.HasIdsOf(column)) {
      problems->Add(field,
                    absl::StrCat("no id column '", column, "'; there are ", IdColumns(schema)));
    } else if (schema.IndexOfIdList(column) >= 0) {
      problems->Add(
          field, absl::StrCat("column '", column,
                              "' may have several ids, but a cross takes one id of each column"));
    }
  }
  if (feature.has_column() || feature.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) {
    problems->Add(
        path, "must not set `column`, `bucketize` or `criteo_x4`, because it has `cross_columns`");
  }
}

void ValidateFeature(const FeatureConfig& feature, const std::string& path,
                     const RecordSchema& schema, Problems* problems) {
  const std::string& column = ColumnOf(feature);
  if (feature.cross_columns_size() > 0) {
    ValidateCross(feature, path, schema, problems);
  } else if (feature.from_numeric_case() != FeatureConfig::FROM_NUMERIC_NOT_SET) {
    // The feature makes ids from numbers, by buckets or rounding.
    if (schema.IndexOfNumeric(column) < 0) {
      problems->Add(path, absl::StrCat("no numeric column '", column, "'; there are ",
                                       FewNames(schema.numerics)));
    }
  } else if (!schema.HasIdsOf(column)) {
    problems->Add(path, absl::StrCat("no id column '", column, "'; there are ", IdColumns(schema)));
  }
  if (feature.has_bucketize()) {
    const auto& boundaries = feature.bucketize().boundaries();
    if (boundaries.empty() || !std::is_sorted(boundaries.begin(), boundaries.end())) {
      problems->Add(absl::StrCat(path, ".bucketize.boundaries"),
                    absl::StrCat("must be ascending and not empty, got [",
                                 absl::StrJoin(boundaries, ", "), "]"));
    }
  }
  if (feature.pooling() == FeatureConfig::NONE) {
    problems->Range(absl::StrCat(path, ".max_length"), feature.max_length(), 1, 65536);
    // Without pooling the ranks need each id's row, and the embedding worker has no sum to send.
    if (feature.transfer() == FeatureConfig::POOLED) {
      problems->Add(absl::StrCat(path, ".transfer"), "POOLED is not possible with pooling NONE");
    }
  }
}

const ColumnConfig* CsvColumn(const DataConfig& data, const std::string& name) {
  for (const ColumnConfig& column : data.csv().columns()) {
    if (column.name() == name) return &column;
  }
  return nullptr;
}

// Refuses to preload rows of ids that no record has: they would take memory and never be used.
void ValidatePreload(const DataConfig& data, const FeatureConfig& feature, const std::string& path,
                     Problems* problems) {
  if (feature.preload_ids() <= 0) return;
  const std::string& name = ColumnOf(feature);
  const auto& of_messages = data.kafka().columns();
  const bool of_message = std::any_of(of_messages.begin(), of_messages.end(),
                                      [&](const auto& column) { return column.name() == name; });
  const ColumnConfig* const column = CsvColumn(data, name);
  int64_t known = -1;  // how many ids there are; -1: only the data shows it
  if (feature.has_bucketize()) {
    known = feature.bucketize().boundaries_size() + 1;
  } else if (feature.has_criteo_x4()) {
    return;
  } else if (feature.cross_columns_size() > 0 || data.has_criteo_tsv() || of_message ||
             (column != nullptr && column->vocabulary_size() == 0)) {
    problems->Add(
        path + ".preload_ids",
        absl::StrCat("must be 0, because the ids of this feature are hashes, and none is in ",
                     "[0, ", feature.preload_ids(), "); ",
                     column != nullptr && feature.cross_columns_size() == 0
                         ? "give its column a vocabulary, so that its ids are numbers from 0, or "
                         : "",
                     "leave preload_ids out: a row is made when its id is first seen"));
    return;
  } else if (column != nullptr) {
    known = std::max(column->vocabulary_size(), column->test_vocabulary_size());
  }
  if (known >= 0 && feature.preload_ids() > known) {
    problems->Add(path + ".preload_ids",
                  absl::StrCat("must be at most ", known,
                               ", the number of ids of this feature, got ", feature.preload_ids()));
  }
}

bool HasSegment(const JobConfig& job, const std::string& table, const std::string& segment) {
  return std::any_of(job.tables().begin(), job.tables().end(), [&](const TableConfig& of_job) {
    return of_job.name() == table &&
           std::any_of(of_job.segments().begin(), of_job.segments().end(),
                       [&](const auto& of_table) { return of_table.name() == segment; });
  });
}

// Features that share an id space share rows, so they must name the same table. Checks all features
// before it reports anything, so that one run of `validate` shows every mistake.
void ValidateFeatures(const JobConfig& job, const RecordSchema& schema, Problems* problems) {
  absl::flat_hash_set<std::string> names;
  absl::flat_hash_map<std::string, std::string> table_of_space;
  for (int i = 0; i < job.data().features_size(); ++i) {
    const FeatureConfig& feature = job.data().features(i);
    const std::string path = absl::StrCat("data.features[", i, "]");
    if (feature.name().empty() || !names.insert(feature.name()).second) {
      problems->Add(path, absl::StrCat("needs a name of its own, got '", feature.name(), "'"));
    }
    ValidateFeature(feature, path, schema, problems);
    // Skips the check if the job only scores, because its model may come from a build without this
    // check.
    if (job.action() == JobConfig::TRAIN) ValidatePreload(job.data(), feature, path, problems);
    const bool known =
        std::any_of(job.tables().begin(), job.tables().end(),
                    [&](const auto& table) { return table.name() == feature.table(); });
    if (!known) {
      problems->Add(absl::StrCat(path, ".table"), absl::StrCat("no table '", feature.table(), "'"));
    }
    if (feature.pooling() == FeatureConfig::NONE && HasSegment(job, feature.table(), "length")) {
      problems->Add(
          absl::StrCat(path, ".pooling"),
          absl::StrCat("NONE makes a model input '", feature.name(), ".length', so table '",
                       feature.table(), "' must not have a segment of that name"));
    }
    const auto [at, inserted] = table_of_space.emplace(IdSpaceOf(feature), feature.table());
    if (!inserted && at->second != feature.table()) {
      problems->Add(path, absl::StrCat("id space '", IdSpaceOf(feature), "' is in table '",
                                       at->second, "' already"));
    }
  }
}

// Checks that each stream that the job reads has a source of data.
void ValidateSources(const JobConfig& job, Problems* problems) {
  const DataConfig& data = job.data();
  if (data.has_synthetic()) return;
  if (job.action() == JobConfig::TRAIN) {
    if (data.train_files_size() > 0 || data.has_kafka()) return;
    problems->Add("data.train_files", "must not be empty (or set data.kafka)");
  } else if (job.action() == JobConfig::PREDICT && data.has_test_kafka()) {
    problems->Add("data.test_kafka",
                  "is not possible for predictions, which are made of files only");
  } else if (!HasTestData(data)) {
    problems->Add("data.test_files",
                  "must not be empty to evaluate or predict; "
                  "name some with --set data.test_files=FILE");
  }
}

}  // namespace

void ValidateData(const JobConfig& job, Problems* problems) {
  const DataConfig& data = job.data();
  if (data.format_case() == DataConfig::FORMAT_NOT_SET) {
    // Reports only the missing format: without it no column has a name, so each feature would add
    // an error.
    problems->Add("data", absl::StrCat("needs one of ", absl::StrJoin(FormatNames(), ", ")));
    return;
  }
  const bool tasks = job.model().tasks_size() > 0;
  if (data.has_csv()) ValidateCsv(data.csv(), tasks, problems);
  if (data.has_libsvm()) ValidateTokenLabels(data.libsvm(), "data.libsvm", problems);
  if (data.has_libffm()) ValidateTokenLabels(data.libffm(), "data.libffm", problems);
  if (data.has_record()) ValidateRecord(data.record(), tasks, problems);
  if (data.has_synthetic()) ValidateSynthetic(data.synthetic(), problems);
  ValidateSources(job, problems);
  ValidateKafka(job, problems);
  const double valid = data.seeded_split().valid_fraction();
  const double test = data.seeded_split().test_fraction();
  if (valid + test >= 1) {
    problems->Add("data.seeded_split", absl::StrCat("the fractions must sum to less than 1, got ",
                                                    valid, " and ", test));
  }
  const RecordSchema schema = SchemaOf(data);
  ValidateNumerics(data, schema, problems);
  ValidateFeatures(job, schema, problems);
  if (data.numerics_size() == 0 && data.features_size() == 0) {
    problems->Add("data", "has neither features nor numerics");
  }
}

}  // namespace satrap
