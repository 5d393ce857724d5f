#include "data_loader/first_labels_of_files.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/testing/temp_dir.h"

namespace satrap {
namespace {

class FirstLabelsOfFilesTest : public testing::Test {
 protected:
  FirstLabelsOfFilesTest() {
    job_.set_data_root(dir_.path());
    for (const auto& [name, kind] :
         {std::pair("y", ColumnConfig::LABEL), std::pair("x", ColumnConfig::NUMERIC)}) {
      ColumnConfig* const column = job_.mutable_data()->mutable_csv()->add_columns();
      column->set_name(name);
      column->set_kind(kind);
    }
    job_.mutable_data()->mutable_csv()->mutable_columns(0)->set_numeric_label(true);
  }
  // Adds a file of `lines` lines, in which line i has the label label(i).
  void Write(const std::string& name, int lines, const std::function<std::string(int)>& label) {
    std::string text;
    for (int i = 0; i < lines; ++i) absl::StrAppend(&text, label(i), ",1\n");
    dir_.Write(name, text);
    job_.mutable_data()->add_train_files(name);
  }
  absl::Status Check(uint32_t loader = 0, uint32_t loaders = 1) {
    ReadProgress progress{ReadProgress::Options()};
    const auto spec = StreamSpec::Make(job_, TRAIN_STREAM, &progress);
    EXPECT_TRUE(spec.ok()) << spec.status();
    const absl::Status status = CheckFirstLabels(**spec, loader, loaders);
    EXPECT_EQ(progress.Snapshot().records() + progress.quarantined(), 0u) << "nothing is counted";
    return status;
  }

  TempDir dir_;
  JobConfig job_;
};

TEST_F(FirstLabelsOfFilesTest, SharesAreLabelsOfBce) {
  Write("a", 1500, [](int i) { return i % 3 == 0 ? "0.5" : i % 3 == 1 ? "0" : "1"; });
  EXPECT_TRUE(Check().ok());
}

TEST_F(FirstLabelsOfFilesTest, SignsEndTheRunAndTheMessageSaysWhatToDo) {
  Write("a", 1500, [](int i) { return i % 2 == 0 ? "-1" : "1"; });
  const absl::Status status = Check();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "label y: 500 of the first 1000 labels of the training data are not a number in [0, 1], "
      "which BCE takes. The values are -1 (500 times), 1 (500 times). If they stand for no and "
      "yes, "
      "as -1 and 1 do, give the column positive_values: \"1\" and negative_values: \"-1\" instead "
      "of numeric_label. For other numbers, such as ratings, name another loss in "
      "model.tasks: "
      "MSE for numbers, SOFTMAX_CROSS_ENTROPY for classes, BPR for an order");
}

TEST_F(FirstLabelsOfFilesTest, RatingsEndTheRunAndTheirValuesAreNamed) {
  Write("a", 999, [](int i) { return absl::StrCat(1 + i % 7); });
  EXPECT_NE(Check().message().find("1 (143 times), 2 (143 times), 3 (143 times), 4 (143 times), 5 "
                                   "(143 times), .... If they stand for no and yes"),
            absl::string_view::npos)
      << Check();
}

TEST_F(FirstLabelsOfFilesTest, OfTwoValuesTheMessageNamesBoth) {
  Write("a", 100, [](int i) { return i % 2 == 0 ? "5" : "1"; });
  EXPECT_NE(Check().message().find("positive_values: \"5\" and negative_values: \"1\""),
            absl::string_view::npos)
      << Check();
}

TEST_F(FirstLabelsOfFilesTest, OneInAHundredIsLeftToTheBadRecords) {
  Write("a", 1000, [](int i) { return i % 100 == 0 ? "7" : "1"; });
  EXPECT_TRUE(Check().ok()) << Check();
  Write("b", 1, [](int) { return "7"; });
  EXPECT_TRUE(Check().ok()) << "after the first 1,000";
}

TEST_F(FirstLabelsOfFilesTest, ASingleLabelIsNoRule) {
  Write("a", 30, [](int i) { return i == 7 ? "7" : "1"; });
  EXPECT_TRUE(Check().ok()) << Check();
  Write("b", 1, [](int) { return "7"; });
  EXPECT_FALSE(Check().ok());
}

TEST_F(FirstLabelsOfFilesTest, ALoaderReadsItsOwnSplits) {
  Write("a", 300, [](int) { return "1"; });
  Write("b", 300, [](int) { return "-1"; });
  EXPECT_TRUE(Check(0, 2).ok());
  EXPECT_FALSE(Check(1, 2).ok());
}

TEST_F(FirstLabelsOfFilesTest, BadRecordsAreLeftToTheirOwnRule) {
  Write("a", 20000, [](int) { return "none"; });
  EXPECT_TRUE(Check().ok()) << Check();
}

TEST_F(FirstLabelsOfFilesTest, ClassesFrom1AreToldOf) {
  Write("a", 100, [](int i) { return absl::StrCat(1 + i % 3); });
  LayerConfig* const layer = job_.mutable_model()->add_layers();
  layer->set_name("classes");
  layer->mutable_linear()->set_units(3);
  TaskConfig* const task = job_.mutable_model()->add_tasks();
  task->set_name("k");
  task->set_output("classes");
  task->set_loss(TaskConfig::SOFTMAX_CROSS_ENTROPY);
  EXPECT_NE(Check().message().find("Number the classes from 0"), absl::string_view::npos)
      << Check();
}

TEST_F(FirstLabelsOfFilesTest, AStreamWithoutFilesHasNone) {
  job_.mutable_data()->mutable_synthetic()->set_train_samples(10);
  job_.mutable_data()->mutable_synthetic()->add_vocabulary_sizes(10);
  job_.mutable_data()->mutable_synthetic()->set_interacting_features(0);
  EXPECT_TRUE(Check().ok());
}

}  // namespace
}  // namespace satrap
