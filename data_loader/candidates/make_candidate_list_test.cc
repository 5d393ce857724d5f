#include "data_loader/candidates/make_candidate_list.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/config/candidates.h"
#include "common/testing/temp_dir.h"
#include "data_loader/parser/string_id.h"
#include "data_loader/source/run_files.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

class MakeCandidateListTest : public testing::Test {
 protected:
  MakeCandidateListTest() {
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
        data {
          csv { separator: '\t'
                columns { name: 'user' kind: ID } columns { name: 'item' kind: ID }
                columns { name: 'label' kind: LABEL } }
          train_files: 'train.tsv'
          features { name: 'user' table: 'users' }
          features { name: 'thing' column: 'item' table: 'items' }
        }
        model { candidates { feature: 'thing' count: 1 } })",
                                                              &job_));
    job_.set_data_root(dir_.path());
    job_.set_run_dir(dir_.path());
  }

  std::string PathOf(const std::string& name) const { return dir_.path() + "/" + name; }
  absl::StatusOr<CandidateList> ItemsOf(const std::string& text, size_t most = kMostListedItems) {
    dir_.Write("items.tsv", text);
    return ReadItemFile(job_, PathOf("items.tsv"), most);
  }
  std::string RefusalOf(const std::string& text, size_t most = kMostListedItems) {
    const auto list = ItemsOf(text, most);
    EXPECT_FALSE(list.ok());
    const std::string message(list.status().message());
    EXPECT_EQ(message.find(PathOf("items.tsv")), 0u) << message;
    return message.substr(std::min(message.size(), PathOf("items.tsv").size()));
  }
  absl::StatusOr<CandidateList> Count(size_t most = kMostListedItems) {
    ReadProgress progress{ReadProgress::Options()};
    auto spec = StreamSpec::Make(job_, TRAIN_STREAM, &progress);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return CountItems(**spec, most);
  }

  TempDir dir_;
  JobConfig job_;
};

TEST_F(MakeCandidateListTest, AFileGivesTheIdsOfItsItemsByFallingCount) {
  const auto list = ItemsOf("ant\t3\nbee\t10\n\ncat\t3\n");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->ids, (std::vector<uint64_t>{StringId("bee"), StringId("ant"), StringId("cat")}));
  EXPECT_EQ(list->counts, (std::vector<uint64_t>{10, 3, 3}));
}

TEST_F(MakeCandidateListTest, WithoutCountsTheOrderIsThatOfTheFile) {
  const auto list = ItemsOf("cat\nant\n");
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->ids, (std::vector<uint64_t>{StringId("cat"), StringId("ant")}));
}

TEST_F(MakeCandidateListTest, AnItemOfAVocabularyIsItsPosition) {
  ColumnConfig* const column = job_.mutable_data()->mutable_csv()->mutable_columns(1);
  for (const char* word : {"ant", "bee", "cat"}) column->add_vocabulary(word);
  EXPECT_EQ(ItemsOf("cat\nant\n")->ids, (std::vector<uint64_t>{2, 0}));
  EXPECT_EQ(RefusalOf("cat\ndog\n"), ":2: 'dog' is not an id of feature 'thing'");
}

TEST_F(MakeCandidateListTest, ItemsOfASyntheticLogAreNumbers) {
  job_.mutable_data()->mutable_synthetic()->add_vocabulary_sizes(10);
  EXPECT_EQ(ItemsOf("7\n5\n")->ids, (std::vector<uint64_t>{7, 5}));
  EXPECT_EQ(RefusalOf("seven\n"), ":1: 'seven' is not an id of feature 'thing'");
}

TEST_F(MakeCandidateListTest, ABadFileIsRefusedWithItsLine) {
  EXPECT_EQ(RefusalOf("ant\t3\nbee\tmany\n"), ":2: a count must be a whole number, got 'many'");
  EXPECT_EQ(RefusalOf("ant\t3\nbee\n"), ":2: either all items have a count or none has");
  EXPECT_EQ(RefusalOf("ant\nbee\nant\n"), ":3: the item 'ant' occurs twice");
  EXPECT_EQ(RefusalOf("ant\nbee\ncat\n", 2),
            ":3: more than 2 different items. Name a list of the most frequent ones "
            "(model.candidates.list)");
  job_.mutable_model()->mutable_candidates()->set_sampler(CandidatesConfig::FIXED_UNIGRAM);
  EXPECT_EQ(RefusalOf("ant\n"), ":1: FIXED_UNIGRAM needs a count after a tab");
}

TEST_F(MakeCandidateListTest, ACompressedFileIsRefusedWithWhatToDo) {
  EXPECT_EQ(RefusalOf("\x1f\x8b\x08 ant"),
            " is compressed, but model.candidates.list must be a plain file: decompress it");
  EXPECT_EQ(RefusalOf("PK\x03\x04 ant"),
            " is a zip archive or an Excel workbook, which cannot be read: unpack it and name the "
            "files that it holds");
}

TEST_F(MakeCandidateListTest, CountsTheGoodRecordsOfTheTrainStream) {
  dir_.Write("train.tsv", "u\tant\t1\nu\tbee\t0\nv\tbee\t1\nu\tcat\tbad\nw\tant\t1\nw\tdog\t1\n");
  const auto list = Count();
  ASSERT_TRUE(list.ok()) << list.status();
  // The list must be sorted by decreasing count, then by id.
  const uint64_t ant = StringId("ant"), bee = StringId("bee");
  EXPECT_EQ(list->ids,
            (std::vector<uint64_t>{std::min(ant, bee), std::max(ant, bee), StringId("dog")}));
  EXPECT_EQ(list->counts, (std::vector<uint64_t>{2, 2, 1}));
  EXPECT_EQ(Count(2).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(MakeCandidateListTest, LeavesOutTheRecordsOfOtherStreams) {
  std::string lines;
  for (int i = 0; i < 400; ++i) absl::StrAppend(&lines, "u\titem", i, "\t1\n");
  dir_.Write("train.tsv", lines);
  job_.mutable_data()->mutable_seeded_split()->set_test_fraction(.5);
  const auto list = Count();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_GT(list->size(), 120u);
  EXPECT_LT(list->size(), 280u);
}

TEST_F(MakeCandidateListTest, ARunMakesItsListOnce) {
  dir_.Write("train.tsv", "u\tant\t1\n");
  dir_.Write("items.tsv", "ant\nbee\n");
  job_.mutable_model()->mutable_candidates()->set_list("items.tsv");
  ASSERT_TRUE(MakeCandidateList(job_, nullptr).ok());
  EXPECT_EQ(ReadCandidateList(CandidateListPath(job_))->size(), 2u);
  dir_.Write("items.tsv", "ant\n");
  ASSERT_TRUE(MakeCandidateList(job_, nullptr).ok());
  EXPECT_EQ(ReadCandidateList(CandidateListPath(job_))->size(), 2u) << "as it was when it began";
}

TEST_F(MakeCandidateListTest, AListThatWasDeletedIsMadeAnewOfTheSameItemsOrNotAtAll) {
  dir_.Write("train.tsv", "u\tant\t1\n");
  dir_.Write("items.tsv", "ant\nbee\n");
  job_.mutable_model()->mutable_candidates()->set_list("items.tsv");
  const auto files = ListRunFiles(job_);
  ASSERT_TRUE(files.ok()) << files.status();
  ASSERT_TRUE(files->has_candidates());
  const absl::optional<FileIdentity> was = files->candidates();
  ASSERT_TRUE(MakeCandidateList(job_, nullptr, was).ok());
  const std::string path = CandidateListPath(job_);
  const uint64_t made = CandidateListHash(*ReadCandidateList(path));
  std::filesystem::remove(path);
  ASSERT_TRUE(MakeCandidateList(job_, nullptr, was).ok());
  EXPECT_EQ(ReadCandidateList(path)->size(), 2u);
  EXPECT_EQ(CandidateListHash(*ReadCandidateList(path)), made);
  // Once the list exists, its source file may be changed or removed.
  dir_.Write("items.tsv", "bee\nant\n");
  EXPECT_TRUE(MakeCandidateList(job_, nullptr, was).ok());
  std::filesystem::remove(path);
  const absl::Status changed = MakeCandidateList(job_, nullptr, was);
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition) << changed;
  EXPECT_NE(changed.message().find("items.tsv has changed since the run began"),
            absl::string_view::npos)
      << changed;
  std::filesystem::remove(dir_.path() + "/items.tsv");
  EXPECT_NE(MakeCandidateList(job_, nullptr, was).message().find("it is not there"),
            absl::string_view::npos);
  const auto without = ListRunFiles(job_);
  ASSERT_TRUE(without.ok()) << "a run that has its list does not need the file: "
                            << without.status();
  EXPECT_FALSE(without->has_candidates());
}

TEST_F(MakeCandidateListTest, AListThatWasExchangedIsRefused) {
  dir_.Write("items.tsv", "ant\nbee\n");
  job_.mutable_model()->mutable_candidates()->set_list("items.tsv");
  ASSERT_TRUE(MakeCandidateList(job_, nullptr).ok());
  const std::string path = CandidateListPath(job_);
  CandidateList exchanged = *ReadCandidateList(path);
  std::swap(exchanged.ids[0], exchanged.ids[1]);
  ASSERT_TRUE(WriteCandidateList(path, exchanged).ok());
  const absl::Status status = MakeCandidateList(job_, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find(path + " is not the list of items that this run began with: it "
                                         "had 2 items and hash "),
            absl::string_view::npos)
      << status;
  std::swap(exchanged.ids[0], exchanged.ids[1]);
  ASSERT_TRUE(WriteCandidateList(path, exchanged).ok());
  EXPECT_TRUE(MakeCandidateList(job_, nullptr).ok()) << "it is as it was";
}

TEST_F(MakeCandidateListTest, AListThatIsDamagedIsRefusedWithWhatToDo) {
  dir_.Write("items.tsv", "ant\nbee\n");
  job_.mutable_model()->mutable_candidates()->set_list("items.tsv");
  ASSERT_TRUE(MakeCandidateList(job_, nullptr).ok());
  const std::string path = CandidateListPath(job_);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  const absl::Status status = MakeCandidateList(job_, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(status.message().find(path + " is damaged"), 0u) << status;
  EXPECT_NE(status.message().find("remove it"), absl::string_view::npos) << status;
  std::filesystem::remove(path);
  EXPECT_TRUE(MakeCandidateList(job_, nullptr).ok());
}

TEST_F(MakeCandidateListTest, ACountedListThatWasDeletedIsMadeAnewOnlyIfItIsTheSame) {
  dir_.Write("train.tsv", "u\tant\t1\nu\tbee\t1\n");
  ReadProgress progress{ReadProgress::Options()};
  const auto make = [&] {
    auto spec = StreamSpec::Make(job_, TRAIN_STREAM, &progress);
    EXPECT_TRUE(spec.ok()) << spec.status();
    return MakeCandidateList(job_, spec->get());
  };
  ASSERT_TRUE(make().ok());
  const std::string path = CandidateListPath(job_);
  std::filesystem::remove(path);
  ASSERT_TRUE(make().ok());
  EXPECT_EQ(ReadCandidateList(path)->size(), 2u);
  std::filesystem::remove(path);
  dir_.Write("train.tsv", "u\tant\t1\nu\tcat\t1\n");
  const absl::Status status = make();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("was removed, and the list that was made anew differs from it"),
            absl::string_view::npos)
      << status;
  EXPECT_EQ(ReadCandidateList(path).status().code(), absl::StatusCode::kNotFound)
      << "nothing draws from it";
}

TEST_F(MakeCandidateListTest, ARunOfAnEarlierBuildGoesOnWithTheListThatIsThere) {
  CandidateList list;
  list.ids = {7, 5};
  list.counts = {2, 1};
  ASSERT_TRUE(WriteCandidateList(CandidateListPath(job_), list).ok());
  ASSERT_TRUE(MakeCandidateList(job_, nullptr).ok());
  list.ids = {5, 7};
  ASSERT_TRUE(WriteCandidateList(CandidateListPath(job_), list).ok());
  EXPECT_FALSE(MakeCandidateList(job_, nullptr).ok()) << "from now on it is known";
}

}  // namespace
}  // namespace satrap
