#include "common/role/protocol_fingerprint.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/numeric/hash.h"
#include "google/protobuf/descriptor.pb.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"

namespace satrap {
namespace {

void Add(const google::protobuf::FileDescriptor& file, std::map<std::string, std::string>* texts) {
  if (texts->count(file.name()) > 0) return;
  google::protobuf::FileDescriptorProto definition;
  file.CopyTo(&definition);  // without comments and positions
  (*texts)[file.name()] = definition.SerializeAsString();
  for (int i = 0; i < file.dependency_count(); ++i) Add(*file.dependency(i), texts);
}

}  // namespace

uint64_t FingerprintOf(const std::vector<const google::protobuf::FileDescriptor*>& files) {
  std::map<std::string, std::string> texts;
  for (const google::protobuf::FileDescriptor* file : files) Add(*file, &texts);
  std::string all;
  for (const auto& [name, text] : texts) absl::StrAppend(&all, name, " ", text.size(), " ", text);
  return Xxh64(all);
}

uint64_t ProtocolFingerprint() {
  static const uint64_t fingerprint =
      FingerprintOf({Envelope::descriptor()->file(), RegisterRequest::descriptor()->file(),
                     JobConfig::descriptor()->file()});
  return fingerprint;
}

}  // namespace satrap
