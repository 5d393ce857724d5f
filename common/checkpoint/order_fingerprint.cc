#include "common/checkpoint/order_fingerprint.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/numeric/hash.h"

namespace satrap {

uint64_t OrderFingerprint(const JobConfig& job, const SplitList& splits) {
  // Numbers, not names, so that a renamed field changes nothing; each with a word before it, so that
  // two neighbours cannot be read as one.
  std::string text = absl::StrCat("mode ", static_cast<int>(job.mode()), " seed ", job.seed(),
                                  " batch ", job.global_batch_size(), " lanes ",
                                  job.mode() == JobConfig::SYNC ? job.lanes() : 0);
  // All of the data section but its file lists: parser, columns, filters, blocks, splits.
  DataConfig data = job.data();
  data.clear_train_files();
  data.clear_valid_files();
  data.clear_test_files();
  // It only stops a run.
  data.clear_max_bad_fraction();
  absl::StrAppend(&text, " data ", Xxh64(data.SerializeAsString()));
  for (const StreamFiles& stream : splits.streams()) {
    absl::StrAppend(&text, " stream ", stream.stream());
    for (const FileIdentity& file : stream.files()) {
      absl::StrAppend(&text, " file ", file.bytes(), " ", file.content());
    }
  }
  return Xxh64(text);
}

}  // namespace satrap
