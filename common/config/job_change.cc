#include "common/config/job_change.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/problems.h"
#include "common/base/status_macros.h"
#include "common/config/data_streams.h"
#include "common/config/field_path.h"
#include "common/config/job_config.h"
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
    "gradient_clip_norm",
    "dense_optimizer.learning_rate",
    "dense_optimizer.learning_rate_schedule",
    "dense_optimizer.l2",
    "dense_optimizer.adagrad.initial_accumulator",
    "dense_optimizer.adagrad.epsilon",
    "dense_optimizer.adam.beta1",
    "dense_optimizer.adam.beta2",
    "dense_optimizer.adam.epsilon",
    "dense_optimizer.momentum.mu",
    "dense_optimizer.momentum.dampening",
    "dense_optimizer.nesterov.mu",
    "dense_optimizer.rmsprop.rho",
    "dense_optimizer.rmsprop.epsilon",
    "dense_optimizer.rmsprop.epsilon_in_root",
    "dense_optimizer.adadelta.rho",
    "dense_optimizer.adadelta.epsilon",
    "dense_optimizer.amsgrad.beta1",
    "dense_optimizer.amsgrad.beta2",
    "dense_optimizer.amsgrad.epsilon",
    "dense_optimizer.adamw.beta1",
    "dense_optimizer.adamw.beta2",
    "dense_optimizer.adamw.epsilon",
    "dense_optimizer.adamw.weight_decay",
    "dense_optimizer.ftrl.beta",
    "dense_optimizer.ftrl.lambda1",
    "dense_optimizer.ftrl.lambda2",
    "dense_optimizer.ftrl.initial_accumulator",
    "dense_optimizer.ftml.beta1",
    "dense_optimizer.ftml.beta2",
    "dense_optimizer.ftml.epsilon",
    "dense_optimizer.parameters",
    "dense_optimizer.averaged_weights.decay",
    "tables.learning_rate_schedule",
    "tables.reserve_rows",
    "tables.frozen",
    "tables.segments.l2",
    "tables.segments.gradient_clip_norm",
    "tables.segments.weight_bound",
    "tables.segments.cow_clip",
    "tables.segments.optimizer.learning_rate",
    "tables.segments.optimizer.adagrad.initial_accumulator",
    "tables.segments.optimizer.adagrad.epsilon",
    "tables.segments.optimizer.rowwise_adagrad.initial_accumulator",
    "tables.segments.optimizer.rowwise_adagrad.epsilon",
    "tables.segments.optimizer.adam.beta1",
    "tables.segments.optimizer.adam.beta2",
    "tables.segments.optimizer.adam.epsilon",
    "tables.segments.optimizer.momentum.mu",
    "tables.segments.optimizer.momentum.dampening",
    "tables.segments.optimizer.nesterov.mu",
    "tables.segments.optimizer.sgd_l1.l1",
    "tables.segments.optimizer.decayed_adagrad.initial_accumulator",
    "tables.segments.optimizer.decayed_adagrad.epsilon",
    "tables.segments.optimizer.decayed_adagrad.decay",
    "tables.segments.optimizer.rmsprop.rho",
    "tables.segments.optimizer.rmsprop.epsilon",
    "tables.segments.optimizer.rmsprop.epsilon_in_root",
    "tables.segments.optimizer.adadelta.rho",
    "tables.segments.optimizer.adadelta.epsilon",
    "tables.segments.optimizer.amsgrad.beta1",
    "tables.segments.optimizer.amsgrad.beta2",
    "tables.segments.optimizer.amsgrad.epsilon",
    "tables.segments.optimizer.adamw.beta1",
    "tables.segments.optimizer.adamw.beta2",
    "tables.segments.optimizer.adamw.epsilon",
    "tables.segments.optimizer.adamw.weight_decay",
    "tables.segments.optimizer.ftrl.beta",
    "tables.segments.optimizer.ftrl.lambda1",
    "tables.segments.optimizer.ftrl.lambda2",
    "tables.segments.optimizer.ftrl.initial_accumulator",
    "tables.segments.optimizer.ftml.beta1",
    "tables.segments.optimizer.ftml.beta2",
    "tables.segments.optimizer.ftml.epsilon",
};

// Of each of kKafkaPaths: how the cluster is reached, and what becomes of what cannot be trained. The
// topics and their offsets are in the run's log.
constexpr absl::string_view kKafkaPaths[] = {"data.kafka", "data.valid_kafka", "data.test_kafka"};
constexpr absl::string_view kKafkaChangeable[] = {
    "brokers",           "settings",        "queue_bytes",         "allowed_lateness_ms",
    "dead_letter_topic", "on_lost_offsets", "broker_wait_seconds", "group_id",
};
// The unordered mode keeps the bounds of the blocks that it has closed in the ledger. The ordered one
// makes batches of them.
constexpr absl::string_view kKafkaWait = "max_wait_ms";

// Of these, the ones that a reproducible run must keep, because they change the order of summation or
// the rounding of what is summed. The number of the other processes does not: whoever sums sorts.
constexpr absl::string_view kChangesBits[] = {
    "nn_worker.replicas",      "nn_worker.compute_threads", "nn_worker.precision",
    "nn_worker.device",        "nn_worker.loss_scale",      "embedding_worker.wire_dtype",
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
    {"data.kafka.topics", "the topics of a run are fixed when it begins"},
    {"data.kafka.topic_pattern", "the topics of a run are fixed when it begins"},
    {"data.kafka.start", "it became offsets when the run began"},
    {"data.kafka.end", "it became offsets when the run began"},
    {"data.kafka.max_wait_ms", "it fixes the order of the samples in mode SYNC"},
    {"data", "it fixes which samples there are, or their order"},
    {"tables.segments.initializer", "rows that are not seen yet would begin otherwise"},
    {"tables.segments.optimizer.momentum.form", "momenta in the cut are those of the other form"},
    {"tables", "it is the shape of the rows in the cut"},
    {"model", "it is the shape of the dense network in the cut"},
    {"dense_optimizer", "the cut holds the state of the optimizer that it was trained with"},
    {"init_from", "the run goes on from its own cut"},
    {"warm_start", "the run goes on from its own cut"},
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

bool IsChangeableOfTopics(absl::string_view path, bool ordered) {
  for (const absl::string_view prefix : kKafkaPaths) {
    absl::string_view field = path;
    if (!absl::ConsumePrefix(&field, prefix) || !absl::ConsumePrefix(&field, ".")) continue;
    return AnyCovers(kKafkaChangeable, field) || (!ordered && field == kKafkaWait);
  }
  return false;
}

// Whether everything at and below `path` may change.
bool MayChange(absl::string_view path, bool reproducible, bool ordered) {
  if (IsChangeableOfTopics(path, ordered)) return true;
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
  Comparison(const JobConfig& from, Problems* problems)
      : reproducible_(from.reproducible()),
        ordered_(from.mode() == JobConfig::SYNC),
        problems_(problems) {}

  void Compare(const Message& from, const Message& to, const Place& prefix) {
    for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = from.GetDescriptor()->field(i);
      const std::string dot = prefix.plain.empty() ? "" : ".";
      const Place place = {prefix.shown + dot + field->name(), prefix.plain + dot + field->name()};
      if (!MayChange(place.plain, reproducible_, ordered_)) CompareField(from, to, field, place);
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
  const bool ordered_;
  Problems* const problems_;
};

// A pattern reads every topic that it matches but those for dead letters. So the old one would become
// input, and the new one may be input of the run already.
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
  // `from`, because it is the run that is reproducible or not; the field itself must not change.
  Problems problems;
  Comparison(from, &problems).Compare(from, to, {});
  CompareDeadLetterTopics(from.data(), to.data(), &problems);
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
  ForgetInheritedSettings(&job);
  for (const std::string& assignment : sets) RETURN_IF_ERROR(SetField(assignment, &job));
  ResolveJob(&job);
  RETURN_IF_ERROR(CheckJobChange(before, job));
  return job;
}

}  // namespace satrap
