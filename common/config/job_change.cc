#include "common/config/job_change.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/problems.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "common/config/field_path.h"
#include "common/config/job_config.h"
#include "common/config/validate/validate_job.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/text_format.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kBits[] =
    "the run is reproducible, and this change would change the bits of its model";

// A field that two messages have: its path, whether it may change, and why not. A field inherits
// `may_change` and `why` from the field above it unless it has options of its own.
struct Place {
  std::string path;
  bool may_change = false;
  std::string why = "it belongs to the run as a whole";
};

// A field's value as text: "7", "SYNC", "[a, b]", "absent". A field that is not set has the text of
// its default, so writing the default down does not change a job.
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

// The value as messages show it: shortened, because lists of files and of layers may be long.
std::string ShownValue(const Message& message, const FieldDescriptor* field) {
  constexpr size_t kLongest = 80;
  const std::string text = ValueText(message, field);
  return text.size() > kLongest ? text.substr(0, kLongest) + "..." : text;
}

// Visits all fields by reflection. So if a field is added to the job later, a change of it is
// refused unless an option of the field, or of a field above it, permits changes
// (proto/options.proto).
class Comparison {
 public:
  Comparison(const JobConfig& from, Problems* problems)
      : reproducible_(from.reproducible()),
        ordered_(from.mode() == JobConfig::SYNC),
        problems_(problems) {}

  void Compare(const Message& from, const Message& to, const Place& above) {
    for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = from.GetDescriptor()->field(i);
      CompareField(from, to, field, PlaceOf(field, above));
    }
  }

 private:
  Place PlaceOf(const FieldDescriptor* field, const Place& above) const {
    Place place = {absl::StrCat(above.path, above.path.empty() ? "" : ".", field->name()),
                   above.may_change, above.why};
    const auto& options = field->options();
    if (options.HasExtension(stays_because)) place.why = options.GetExtension(stays_because);
    if (!options.HasExtension(resume)) return place;
    const AtResume::Change change = options.GetExtension(resume);
    place.may_change = change == AtResume::MAY_CHANGE ||
                       (change == AtResume::UNLESS_REPRODUCIBLE && !reproducible_) ||
                       (change == AtResume::UNLESS_SYNC && !ordered_);
    if (change == AtResume::UNLESS_REPRODUCIBLE) place.why = kBits;
    return place;
  }

  void CompareField(const Message& from, const Message& to, const FieldDescriptor* field,
                    const Place& place) {
    const Reflection* reflection = from.GetReflection();
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!place.may_change && ValueText(from, field) != ValueText(to, field)) {
        Refuse(from, to, field, place);
      }
    } else if (field->is_repeated()) {
      const int size = reflection->FieldSize(from, field);
      if (size != reflection->FieldSize(to, field)) {
        // Elements have no names, so if the lists differ in length it is unknown which elements are
        // new.
        if (!place.may_change) Refuse(from, to, field, place);
        return;
      }
      for (int i = 0; i < size; ++i) {
        Place element = place;
        absl::StrAppend(&element.path, ElementSelector(from, field, i));
        Compare(reflection->GetRepeatedMessage(from, field, i),
                reflection->GetRepeatedMessage(to, field, i), element);
      }
    } else if (!place.may_change &&
               reflection->HasField(from, field) != reflection->HasField(to, field)) {
      Refuse(from, to, field, place);
    } else {
      Compare(reflection->GetMessage(from, field), reflection->GetMessage(to, field), place);
    }
  }

  void Refuse(const Message& from, const Message& to, const FieldDescriptor* field,
              const Place& place) {
    problems_->Add(place.path, absl::StrCat("cannot change from ", ShownValue(from, field), " to ",
                                            ShownValue(to, field), ": ", place.why));
  }

  const bool reproducible_;
  const bool ordered_;
  Problems* const problems_;
};

void AddDifferences(const Message& from, const Message& to, const std::string& above,
                    std::vector<std::string>* differences) {
  for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = from.GetDescriptor()->field(i);
    if (ValueText(from, field) == ValueText(to, field)) continue;
    const std::string path = absl::StrCat(above, above.empty() ? "" : ".", field->name());
    const Reflection* reflection = from.GetReflection();
    const size_t before = differences->size();
    if (!field->is_repeated() && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      AddDifferences(reflection->GetMessage(from, field), reflection->GetMessage(to, field), path,
                     differences);
    }
    // Fields below this one that differ have been reported by now. If no such field differs, only
    // one of the two jobs has the message, and the message itself is reported.
    if (differences->size() > before) continue;
    differences->push_back(
        absl::StrCat(path, " from ", ShownValue(from, field), " to ", ShownValue(to, field)));
  }
}

// A topic pattern reads every topic that it matches, except the topic for dead letters. If the
// topic for dead letters changed, the old one would become input, and the new one may already be
// input of the run.
void CompareDeadLetterTopics(const DataConfig& from, const DataConfig& to, Problems* problems) {
  constexpr Stream kStreams[] = {TRAIN_STREAM, VALID_STREAM, TEST_STREAM};
  for (const Stream stream : kStreams) {
    const KafkaConfig* const old_topics = TopicsOf(from, stream);
    const KafkaConfig* const new_topics = TopicsOf(to, stream);
    if (old_topics == nullptr || new_topics == nullptr) continue;
    const std::string names[] = {old_topics->dead_letter_topic(), new_topics->dead_letter_topic()};
    if (names[0] == names[1]) continue;
    for (const Stream reader : kStreams) {
      const KafkaConfig* const read = TopicsOf(from, reader);
      if (read == nullptr) continue;
      const std::string& pattern = read->topic_pattern();
      const auto* const matched =
          std::find_if(std::begin(names), std::end(names), [&pattern](const std::string& name) {
            return !name.empty() && fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
          });
      if (matched == std::end(names)) continue;
      problems->Add(absl::StrCat(TopicsPath(stream), ".dead_letter_topic"),
                    absl::StrCat("cannot change from '", names[0], "' to '", names[1], "': ",
                                 TopicsPath(reader), ".topic_pattern '", pattern, "' matches ",
                                 *matched, ", so dead letters would be read as input"));
      break;
    }
  }
}

}  // namespace

absl::Status CheckJobChange(const JobConfig& from, const JobConfig& to) {
  // `from` decides whether the run is reproducible, because `reproducible` itself must not change.
  Problems problems;
  Comparison(from, &problems).Compare(from, to, {});
  CompareDeadLetterTopics(from.data(), to.data(), &problems);
  const absl::Status changes = problems.ToStatus();
  // The job of an earlier build may have a value that this build refuses. A change of another field
  // must not fail because of it.
  Problems new_problems = ProblemsOfJob(to);
  absl::Status valid = new_problems.ToStatus();
  if (!valid.ok()) {
    new_problems.Drop(ProblemsOfJob(from));
    valid = new_problems.ToStatus();
  }
  if (changes.ok()) return valid;
  if (valid.ok()) return changes;
  return absl::InvalidArgumentError(absl::StrCat(changes.message(), "\n", valid.message()));
}

std::string JobChangeText(const JobConfig& from, const JobConfig& to) {
  JobConfig jobs[] = {from, to};
  for (JobConfig& job : jobs) job.clear_run_dir();
  std::vector<std::string> differences;
  AddDifferences(jobs[0], jobs[1], "", &differences);
  return absl::StrJoin(differences, ", ");
}

absl::StatusOr<JobConfig> ChangedJob(const JobConfig& from, const std::vector<std::string>& sets) {
  JobConfig before = from;
  ResolveJob(&before);
  JobConfig job = before;
  ForgetInheritedSettings(&job);
  for (const std::string& assignment : sets) RETURN_IF_ERROR(SetField(assignment, &job));
  ResolveJob(&job);
  RETURN_IF_ERROR(CheckJobChange(before, job));
  return job;
}

}  // namespace satrap
