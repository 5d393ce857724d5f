#include "common/role/protocol_fingerprint.h"

#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "proto/options.pb.h"

namespace satrap {
namespace {

using ::google::protobuf::DescriptorPool;
using ::google::protobuf::FieldDescriptorProto;
using ::google::protobuf::FieldOptions;
using ::google::protobuf::FileDescriptorProto;

// A file with one message of one field, and a file that imports it.
struct Protocol {
  explicit Protocol(const std::string& field, int number = 1,
                    const FieldOptions& options = FieldOptions()) {
    FileDescriptorProto base;
    base.set_name("base.proto");
    auto* message = base.add_message_type();
    message->set_name("Row");
    auto* added = message->add_field();
    added->set_name(field);
    added->set_number(number);
    added->set_type(FieldDescriptorProto::TYPE_INT32);
    added->set_label(FieldDescriptorProto::LABEL_OPTIONAL);
    if (options.ByteSizeLong() > 0) *added->mutable_options() = options;
    FileDescriptorProto user;
    user.set_name("user.proto");
    user.add_dependency("base.proto");
    imported = pool.BuildFile(base);
    file = pool.BuildFile(user);
  }
  DescriptorPool pool;
  const google::protobuf::FileDescriptor* imported;
  const google::protobuf::FileDescriptor* file;
};

TEST(ProtocolFingerprint, IsTheSameForTheSameDefinitions) {
  EXPECT_EQ(FingerprintOf({Protocol("key").file}), FingerprintOf({Protocol("key").file}));
  EXPECT_NE(ProtocolFingerprint(), 0u);
  EXPECT_EQ(ProtocolFingerprint(), ProtocolFingerprint());
}

TEST(ProtocolFingerprint, ChangesWithAFieldOfAnImportedFile) {
  EXPECT_NE(FingerprintOf({Protocol("key").file}), FingerprintOf({Protocol("id").file}));
  EXPECT_NE(FingerprintOf({Protocol("key").file}), FingerprintOf({Protocol("key", 2).file}));
}

TEST(ProtocolFingerprint, DoesNotDependOnTheOrderOfFiles) {
  const Protocol protocol("key");
  EXPECT_EQ(FingerprintOf({protocol.file, protocol.imported}),
            FingerprintOf({protocol.imported, protocol.file}));
}

// Two builds send the same bytes even if one of them allows more values of a setting.
TEST(ProtocolFingerprint, LeavesOutTheFactsOfSettings) {
  FieldOptions narrow;
  narrow.MutableExtension(range)->set_high(8);
  FieldOptions wide;
  wide.MutableExtension(range)->set_high(16);
  wide.SetExtension(resume, AtResume::MAY_CHANGE);
  wide.SetExtension(stays_because, "it is the shape of something");
  wide.SetExtension(unit, "ms");
  const uint64_t without = FingerprintOf({Protocol("key").file});
  EXPECT_EQ(FingerprintOf({Protocol("key", 1, narrow).file}), without);
  EXPECT_EQ(FingerprintOf({Protocol("key", 1, wide).file}), without);
  EXPECT_NE(FingerprintOf({Protocol("key", 2, wide).file}), without);
}

TEST(ProtocolFingerprint, ChangesWithAnOptionOfProtocolBuffers) {
  FieldOptions old;
  old.set_deprecated(true);
  EXPECT_NE(FingerprintOf({Protocol("key", 1, old).file}), FingerprintOf({Protocol("key").file}));
}

}  // namespace
}  // namespace satrap
