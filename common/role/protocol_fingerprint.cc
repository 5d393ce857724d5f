#include "common/role/protocol_fingerprint.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/numeric/hash.h"
#include "google/protobuf/descriptor.pb.h"
#include "proto/chunk.pb.h"
#include "proto/control.pb.h"
#include "proto/hot.pb.h"
#include "proto/job.pb.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;

// Options of settings are left out, because they do not change the bytes of a message.
void LeaveOutSettingOptions(DescriptorProto* message) {
  for (FieldDescriptorProto& field : *message->mutable_field()) {
    if (!field.has_options()) continue;
    field.mutable_options()->ClearExtension(range);
    field.mutable_options()->ClearExtension(resume);
    field.mutable_options()->ClearExtension(stays_because);
    field.mutable_options()->ClearExtension(unit);
    if (field.options().ByteSizeLong() == 0) field.clear_options();
  }
  for (DescriptorProto& below : *message->mutable_nested_type()) LeaveOutSettingOptions(&below);
}

bool DeclaresSettingOptions(const FileDescriptor& file) {
  return file.name() == SettingRange::descriptor()->file()->name();
}

void Add(const FileDescriptor& file, std::map<std::string, std::string>* texts) {
  if (texts->count(file.name()) > 0) return;
  FileDescriptorProto definition;
  file.CopyTo(&definition);  // without comments and positions
  definition.clear_dependency();
  for (int i = 0; i < file.dependency_count(); ++i) {
    if (!DeclaresSettingOptions(*file.dependency(i))) {
      definition.add_dependency(file.dependency(i)->name());
    }
  }
  for (DescriptorProto& message : *definition.mutable_message_type()) {
    LeaveOutSettingOptions(&message);
  }
  (*texts)[file.name()] = definition.SerializeAsString();
  for (int i = 0; i < file.dependency_count(); ++i) {
    if (!DeclaresSettingOptions(*file.dependency(i))) Add(*file.dependency(i), texts);
  }
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
      FingerprintOf({ChunkNote::descriptor()->file(), Envelope::descriptor()->file(),
                     RegisterRequest::descriptor()->file(), JobConfig::descriptor()->file()});
  return fingerprint;
}

}  // namespace satrap
