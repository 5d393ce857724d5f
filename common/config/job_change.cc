#include "common/config/job_change.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/config/field_path.h"
#include "common/config/job_config.h"
#include "common/config/problems.h"
#include "common/config/validate_job.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"

namespace satrap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Paths without positions; a path stands for everything below it, too. Each of these is read anew by
// the processes of a generation, and nothing that a cut holds depends on its value of before.
constexpr absl::string_view kChangeable[] = {
    "data_loader",
    "embedding_worker",
    "embedding_ps",
    "nn_worker",
    "epochs",
    "max_steps",
    "max_skipped_steps_in_a_row",
    "max_staleness",
    "staleness_warmup_steps",
    "evaluation",
    "checkpoint",
    "max_restarts",
    "stop_seconds",
    "kill_points",
    "max_message_bytes",
    "data_root",
    "run_dir",
    "data.max_bad_fraction",
    "dense_optimizer.learning_rate",
    "dense_optimizer.warmup_steps",
    "dense_optimizer.l2",
    "dense_optimizer.adagrad.initial_accumulator",
    "dense_optimizer.adagrad.epsilon",
    "dense_optimizer.adam.beta1",
    "dense_optimizer.adam.beta2",
    "dense_optimizer.adam.epsilon",
    "tables.learning_rate_schedule",
    "tables.l2",
    "tables.gradient_clip_norm",
    "tables.weight_bound",
    "tables.reserve_rows",
    "tables.segments.optimizer.learning_rate",
    "tables.segments.optimizer.adagrad.initial_accumulator",
    "tables.segments.optimizer.adagrad.epsilon",
    "tables.segments.optimizer.rowwise_adagrad.initial_accumulator",
    "tables.segments.optimizer.rowwise_adagrad.epsilon",
    "tables.segments.optimizer.adam.beta1",
    "tables.segments.optimizer.adam.beta2",
    "tables.segments.optimizer.adam.epsilon",
};

// Of these, the ones that a reproducible run must keep, because they change the order of summation or
// the rounding of what is summed. The number of the other processes does not: whoever sums sorts.
constexpr absl::string_view kChangesBits[] = {
    "nn_worker.replicas",
    "nn_worker.compute_threads",
    "embedding_worker.wire_dtype",
    "embedding_ps.wire_dtype",
};
constexpr absl::string_view kBits =
    "the run is reproducible, and its model would get other bits than without the change";

struct Reason {
  absl::string_view path;
  absl::string_view why;
};
// The first entry that covers a path gives the reason.
constexpr Reason kReasons[] = {
    {"mode", "it fixes the order of the samples"},
    {"reproducible", "a run is reproducible from its first step on or not at all"},
    {"seed", "it fixes the order of the samples and the initial values of rows"},
    {"global_batch_size", "it fixes the order of the samples"},
    {"lanes", "it fixes the order of the samples"},
    {"data.train_files", "the files of a run are fixed when it begins"},
    {"data.valid_files", "the files of a run are fixed when it begins"},
    {"data.test_files", "the files of a run are fixed when it begins"},
    {"data", "it fixes which samples there are, or their order"},
    {"tables.segments.initializer", "rows that are not seen yet would begin otherwise"},
    {"tables", "it is the shape of the rows in the cut"},
    {"model", "it is the shape of the dense network in the cut"},
    {"dense_optimizer", "the cut holds the state of the optimizer that it was trained with"},
    {"init_from", "the run goes on from its own cut"},
};
constexpr absl::string_view kNotListed = "it belongs to the run as a whole";

bool Covers(absl::string_view prefix, absl::string_view path) {
  return absl::ConsumePrefix(&path, prefix) && (path.empty() || path.front() == '.');
}

template <size_t kSize>
bool AnyCovers(const absl::string_view (&prefixes)[kSize], absl::string_view path) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [path](absl::string_view prefix) { return Covers(prefix, path); });
}

bool IsAboveWhatChangesBits(absl::string_view path) {
  return std::any_of(std::begin(kChangesBits), std::end(kChangesBits),
                     [path](absl::string_view below) { return Covers(path, below); });
}

// Whether everything at and below `path` may change.
bool MayChange(absl::string_view path, bool reproducible) {
  if (!AnyCovers(kChangeable, path)) return false;
  return !reproducible || (!AnyCovers(kChangesBits, path) && !IsAboveWhatChangesBits(path));
}

absl::string_view WhyNot(absl::string_view path) {
  // These are refused in reproducible runs alone.
  if (AnyCovers(kChangesBits, path)) return kBits;
  for (const Reason& reason : kReasons) {
    if (Covers(reason.path, path)) return reason.why;
  }
  return kNotListed;
}

// A field of two messages: its path for people, and without positions.
struct Place {
  std::string shown;
  std::string plain;
};

// "7", "SYNC", "[a, b]", "absent". A field that is not set has the text of its default, so that a
// job in which somebody has written the default down is no other job.
std::string ValueText(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  std::string text;
  if (field->is_repeated()) {
    for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
      std::string element;
      google::protobuf::TextFormat::PrintFieldValueToString(message, field, i, &element);
      absl::StrAppend(&text, i == 0 ? "" : ", ", element);
    }
    text = absl::StrCat("[", text, "]");
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (!reflection->HasField(message, field)) return "absent";
    text = reflection->GetMessage(message, field).ShortDebugString();
    if (text.empty()) text = "present";
  } else if (!reflection->HasField(message, field) && !field->has_default_value()) {
    return "absent";
  } else {
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, -1, &text);
  }
  return text;
}

// For a message to people. Lists of files and of layers may be long.
std::string ShownValue(const Message& message, const FieldDescriptor* field) {
  constexpr size_t kLongest = 80;
  const std::string text = ValueText(message, field);
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

// Goes through all fields by reflection, so that one that is added to the job later must not change
// until somebody has thought about it and lists it above.
class Comparison {
 public:
  Comparison(bool reproducible, Problems* problems)
      : reproducible_(reproducible), problems_(problems) {}

  void Compare(const Message& from, const Message& to, const Place& prefix) {
    for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = from.GetDescriptor()->field(i);
      const std::string dot = prefix.plain.empty() ? "" : ".";
      const Place place = {prefix.shown + dot + field->name(), prefix.plain + dot + field->name()};
      if (!MayChange(place.plain, reproducible_)) CompareField(from, to, field, place);
    }
  }

 private:
  void CompareField(const Message& from, const Message& to, const FieldDescriptor* field,
                    const Place& place) {
    const Reflection* reflection = from.GetReflection();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      if (ValueText(from, field) != ValueText(to, field)) Refuse(from, to, field, place);
    } else if (field->is_repeated()) {
      const int size = reflection->FieldSize(from, field);
      // Elements have no names, so of lists of different lengths nobody knows which one is new.
      if (size != reflection->FieldSize(to, field)) return Refuse(from, to, field, place);
      for (int i = 0; i < size; ++i) {
        Compare(reflection->GetRepeatedMessage(from, field, i),
                reflection->GetRepeatedMessage(to, field, i),
                {absl::StrCat(place.shown, "[", i, "]"), place.plain});
      }
    } else if (reflection->HasField(from, field) != reflection->HasField(to, field)) {
      Refuse(from, to, field, place);
    } else {
      Compare(reflection->GetMessage(from, field), reflection->GetMessage(to, field), place);
    }
  }

  void Refuse(const Message& from, const Message& to, const FieldDescriptor* field,
              const Place& place) {
    problems_->Add(place.shown, absl::StrCat("cannot change from ", ShownValue(from, field), " to ",
                                             ShownValue(to, field), ": ", WhyNot(place.plain)));
  }

  const bool reproducible_;
  Problems* const problems_;
};

}  // namespace

absl::Status CheckJobChange(const JobConfig& from, const JobConfig& to) {
  // `from`, because it is the run that is reproducible or not; the field itself must not change.
  Problems problems;
  Comparison(from.reproducible(), &problems).Compare(from, to, {});
  const absl::Status changes = problems.ToStatus();
  const absl::Status valid = ValidateJob(to);
  if (changes.ok()) return valid;
  if (valid.ok()) return changes;
  return absl::InvalidArgumentError(absl::StrCat(changes.message(), "\n", valid.message()));
}

absl::StatusOr<JobConfig> ChangedJob(const JobConfig& from, const std::vector<std::string>& sets) {
  JobConfig before = from;
  ResolveJob(&before);
  JobConfig job = before;
  for (const std::string& assignment : sets) RETURN_IF_ERROR(SetField(assignment, &job));
  ResolveJob(&job);
  RETURN_IF_ERROR(CheckJobChange(before, job));
  return job;
}

}  // namespace satrap
