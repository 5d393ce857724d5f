#include "common/checkpoint/manifest.h"

#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/config/text_format.h"
#include "common/numeric/crc32c.h"
#include "common/testing/temp_dir.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class ManifestTest : public testing::Test {
 protected:
  ManifestTest() {
    manifest_.set_version(kManifestVersion);
    manifest_.set_step(7);
    manifest_.add_table_files()->set_name("table_0_000.rows");
  }
  static std::string Checked(const std::string& text) {
    return absl::StrCat(text, absl::StrFormat("# crc32c %08x\n", Crc32c(text)));
  }
  void Rewrite(const std::string& content) { std::ofstream(directory_ + "/manifest") << content; }
  const TempDir temp_;
  const std::string directory_ = temp_.path();
  CheckpointManifest manifest_;
};

TEST_F(ManifestTest, ReadsBackWhatWasWritten) {
  ASSERT_TRUE(WriteManifest(directory_, manifest_).ok());
  const auto read = ReadManifest(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), manifest_.SerializeAsString());
}

TEST_F(ManifestTest, TellsItsChecksumWhichIsThatOfItsLastLine) {
  ASSERT_TRUE(WriteManifest(directory_, manifest_).ok());
  uint32_t crc32c = 0;
  ASSERT_TRUE(ReadManifest(directory_, DiskFileSystem(), &crc32c).ok());
  const std::string content = *ReadWholeFile(directory_ + "/manifest");
  EXPECT_EQ(content.substr(content.rfind("# crc32c")), absl::StrFormat("# crc32c %08x\n", crc32c));
}

TEST_F(ManifestTest, AFolderWithoutManifestIsNoModel) {
  EXPECT_EQ(ReadManifest(directory_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ManifestTest, AChangedOrCutManifestIsDataLoss) {
  ASSERT_TRUE(WriteManifest(directory_, manifest_).ok());
  const std::string content = *ReadWholeFile(directory_ + "/manifest");
  std::string changed = content;
  changed[changed.find("step: 7") + 6] = '8';
  Rewrite(changed);
  EXPECT_EQ(ReadManifest(directory_).status().code(), absl::StatusCode::kDataLoss);
  Rewrite(content.substr(0, content.size() / 2));
  EXPECT_EQ(ReadManifest(directory_).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ManifestTest, AnOlderVersionIsRefused) {
  manifest_.set_version(2);
  ASSERT_TRUE(WriteManifest(directory_, manifest_).ok());
  const absl::Status status = ReadManifest(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("version 2, but this build reads only 3 to 4"),
            absl::string_view::npos)
      << status;
}

TEST_F(ManifestTest, ANewerOneThatThisBuildMustNotReadNeedsANewerBuildWhateverFieldsItHas) {
  Rewrite(Checked("version: 6\nmin_reader_version: 5\nfolds { name: \"x\" }\nages: [1, 2]\n"));
  const absl::Status status = ReadManifest(directory_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_NE(status.message().find("/manifest needs a newer build: it is for readers of version 5"),
            absl::string_view::npos)
      << status;
}

TEST_F(ManifestTest, ANewerOneThatThisBuildMayReadIsReadWithoutWhatItDoesNotKnow) {
  Rewrite(Checked("version: 5\nmin_reader_version: 3\nstep: 9\nfolds { name: \"x\" }\n"));
  const auto read = ReadManifest(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step(), 9u);
}

TEST_F(ManifestTest, ACutOfTheVersionBeforeIsRead) {
  Rewrite(
      Checked("version: 3\nmin_reader_version: 3\nstep: 9\n"
              "table_files { name: \"table_0_partitions_0000_0255.rows\" rows: 5 bytes: 40 }\n"));
  const auto read = ReadManifest(directory_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->step(), 9u);
  EXPECT_EQ(read->table_files(0).rows(), 5u);
}

TEST_F(ManifestTest, OnlyACutWithAFileOfSeveralPartsNeedsANewReader) {
  manifest_.add_table_files()->set_name("table_1_000.rows");
  EXPECT_EQ(MinReaderVersion(manifest_), kOldestManifestVersion);
  manifest_.add_table_files()->set_name("table_1_000.rows");
  EXPECT_EQ(MinReaderVersion(manifest_), kManifestVersion);
}

TEST_F(ManifestTest, EntriesOfOneNameArePartsOfOneFile) {
  manifest_.clear_table_files();
  for (const auto& [name, bytes] : {std::pair<const char*, int>{"a", 10}, {"b", 20}, {"b", 30}}) {
    SavedFile* file = manifest_.add_table_files();
    file->set_name(name);
    file->set_bytes(bytes);
    file->set_crc32c(static_cast<uint32_t>(bytes + 1));
  }
  manifest_.set_dense_file("dense.bin");
  manifest_.set_dense_bytes(4);
  const std::vector<FileOfManifest> files = FilesOf(manifest_);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].bytes(), 10u);
  EXPECT_EQ(files[1].name, "b");
  EXPECT_EQ(files[1].bytes(), 50u);
  ASSERT_EQ(files[1].parts.size(), 2u);
  EXPECT_EQ(files[1].parts[1].crc32c, 31u);
  EXPECT_EQ(files[2].name, "dense.bin");
  const std::vector<PartOfFile> parts = PartsOfFiles(manifest_);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[0].offset, 0u);
  EXPECT_TRUE(parts[0].is_last);
  EXPECT_EQ(parts[1].offset, 0u);
  EXPECT_FALSE(parts[1].is_last);
  EXPECT_EQ(parts[2].offset, 20u);
  EXPECT_TRUE(parts[2].is_last);
}

TEST_F(ManifestTest, AFieldThatThisVersionDoesNotHaveIsDataLoss) {
  Rewrite(Checked("version: 4\nmin_reader_version: 3\nstep: 9\nfolds { name: \"x\" }\n"));
  EXPECT_EQ(ReadManifest(directory_).status().code(), absl::StatusCode::kDataLoss);
}

TEST(ModelDigest, NoticesARowOrTheDenseNetworkButNotHowRowsLieInFiles) {
  CheckpointManifest one;
  one.set_dense_crc32c(7);
  one.add_table_files()->set_rows_digest(30);
  CheckpointManifest two;
  two.set_dense_crc32c(7);
  two.add_table_files()->set_rows_digest(10);
  two.add_table_files()->set_rows_digest(20);
  EXPECT_EQ(ModelDigest(one), ModelDigest(two));
  two.mutable_table_files(1)->set_rows_digest(21);
  EXPECT_NE(ModelDigest(one), ModelDigest(two));
  two.mutable_table_files(1)->set_rows_digest(20);
  two.mutable_table_files(1)->set_table(1);
  EXPECT_NE(ModelDigest(one), ModelDigest(two)) << "rows of another table";
  one.set_dense_crc32c(8);
  EXPECT_NE(ModelDigest(one), ModelDigest(two));
}

TEST(TableFingerprint, NoticesLayoutAndOptimizerKindButNoLearningRate) {
  TableConfig table;
  table.set_id(3);
  SegmentConfig* segment = table.add_segments();
  segment->set_name("embedding");
  segment->set_dim(8);
  segment->mutable_optimizer()->mutable_adagrad();
  const uint64_t fingerprint = TableFingerprint(table);
  segment->mutable_optimizer()->set_learning_rate(0.5);
  EXPECT_EQ(TableFingerprint(table), fingerprint);
  segment->set_dim(9);
  EXPECT_NE(TableFingerprint(table), fingerprint);
  segment->set_dim(8);
  segment->mutable_optimizer()->mutable_adam();
  EXPECT_NE(TableFingerprint(table), fingerprint);
}

TEST(TableFingerprint, NoticesEverySettingThatMakesRowsLonger) {
  TableConfig table;
  SegmentConfig* segment = table.add_segments();
  segment->mutable_optimizer()->mutable_rmsprop();
  std::set<uint64_t> fingerprints = {TableFingerprint(table)};
  segment->mutable_optimizer()->mutable_rmsprop()->set_momentum(0.5f);
  fingerprints.insert(TableFingerprint(table));
  segment->mutable_optimizer()->mutable_rmsprop()->set_centred(true);
  fingerprints.insert(TableFingerprint(table));
  segment->set_l2_mode(SegmentConfig::TOUCHED);
  fingerprints.insert(TableFingerprint(table));
  EXPECT_EQ(fingerprints.size(), 4u);
  segment->set_l2(0.5f);
  fingerprints.insert(TableFingerprint(table));
  EXPECT_EQ(fingerprints.size(), 4u);
}

TEST(TableFingerprint, TellsTheFormsOfRowsApartWhereTheyDiffer) {
  TableConfig table;
  SegmentConfig* segment = table.add_segments();
  const auto has_forms = [&] {
    return TableFingerprint(table, RowForm::kFirst) != TableFingerprint(table, RowForm::kSecond);
  };
  segment->mutable_optimizer()->mutable_adadelta();
  EXPECT_FALSE(has_forms()) << "so older cuts are taken as they are";
  table.set_semantics(TableConfig::GLOBAL);
  EXPECT_TRUE(has_forms()) << "a last step";
  segment->mutable_optimizer()->mutable_sgd_l1();
  table.set_semantics(TableConfig::LAZY);
  EXPECT_TRUE(has_forms());
  segment->mutable_optimizer()->mutable_adagrad();
  EXPECT_FALSE(has_forms());
  segment->set_l2_mode(SegmentConfig::TOUCHED);
  EXPECT_TRUE(has_forms()) << "the step of the last L2";
}

}  // namespace
}  // namespace satrap
