#include "nn_worker/trainer/part_view.h"

#include <functional>
#include <string>

#include "common/config/text_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn_worker/trainer/testing/fake_tables.h"

namespace satrap {
namespace {

constexpr char kJob[] = R"pb(
  data {
    numerics { name: "n" }
    features { name: "a" table: "t" transfer: ROWS }
    features { name: "b" table: "t" pooling: MEAN transfer: POOLED }
  }
  tables {
    name: "t"
    id: 5
    segments { name: "linear" dim: 1 }
    segments { name: "embedding" dim: 2 }
  }
)pb";

class PartViewTest : public testing::Test {
 protected:
  PartViewTest() {
    JobConfig job;
    EXPECT_TRUE(ParseText(kJob, "job", &job).ok());
    layout_ = MakePartLayout(job);
    FakeTables tables(&layout_);
    FakeSample first{{.5f}, {{1, 2}, {3}}, 1, 2, false, -70};
    FakeSample second{{.25f}, {{}, {3, 4}}, 0, 1, true, 1777627800500};
    part_ = tables.MakePart({first, second}, 10, F32);
  }

  // The error message that ReadPart gives after `change` was made; empty if there is no error.
  std::string ErrorAfter(std::function<void(NextBatchAnswerHeader*)> change) {
    PartInput changed = part_;
    change(&changed.header);
    return std::string(ReadPart(layout_, 2, changed).status().message());
  }

  PartLayout layout_;
  PartInput part_;
};

TEST_F(PartViewTest, LayoutNamesInputsInOrder) {
  ASSERT_EQ(layout_.inputs.segments.size(), 4u);
  EXPECT_EQ(layout_.inputs.segments[3].feature, "b");
  EXPECT_EQ(layout_.inputs.segments[3].segment, "embedding");
  EXPECT_EQ(layout_.features[1].segments[1].input, 4);
  EXPECT_EQ(layout_.features[1].segments[1].column, 1u);
  EXPECT_TRUE(layout_.features[1].pooled_at_worker);
  EXPECT_TRUE(layout_.tables[0].sends_rows);
}

TEST_F(PartViewTest, ReadsWhatWasSent) {
  const auto view = ReadPart(layout_, 2, part_);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->samples, 2u);
  EXPECT_EQ(view->first_sample, 10u);
  EXPECT_EQ(view->numeric[1], .25f);
  EXPECT_EQ(view->labels[0], 1);
  EXPECT_EQ(view->weights[0], 2);
  EXPECT_EQ(view->mask[1], 0);
  EXPECT_EQ(view->times, (std::vector<int64_t>{-70, 1777627800500}));
  EXPECT_EQ(view->tables[0].num_rows, 2u);
  EXPECT_EQ(view->features[0].indices.rows.size(), 2u);
  EXPECT_EQ(view->features[0].indices.offsets[2], 2u);
  EXPECT_EQ(view->features[1].pooled.count, 6u);
}

TEST_F(PartViewTest, RecordsNeedNoTimes) {
  part_.header.mutable_part()->clear_times();
  const auto view = ReadPart(layout_, 2, part_);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE(view->times.empty());
}

TEST_F(PartViewTest, WhatDoesNotFitIsRefusedByName) {
  using Header = NextBatchAnswerHeader;
  EXPECT_EQ(ErrorAfter([](Header*) {}), "");
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_part()->set_samples(3); }).find("part.samples"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_part()->set_samples(1); }).find("numeric_values"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) {
              h->mutable_part()->mutable_times()->set_size_bytes(8);
            }).find("times"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_part()->set_numerics(2); }).find("numerics"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_part()->set_tasks(2); }).find("2 tasks"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_part()->mutable_groups(); }).find("part.groups"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_tables(0)->set_table(6); }).find("table 6"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->clear_tables(); }).find("rows of t are missing"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_features()->RemoveLast(); }).find("features"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](Header* h) { h->mutable_features(0)->set_num_ids(1); }).find("indices"),
            std::string::npos);
}

TEST_F(PartViewTest, ARowIndexOutOfRangeIsRefused) {
  // The part has one row fewer than the indices refer to, and its section is shortened to fit.
  EXPECT_NE(ErrorAfter([](NextBatchAnswerHeader* h) {
              TableRows* rows = h->mutable_tables(0);
              rows->set_num_rows(1);
              rows->mutable_values()->set_size_bytes(12);
            }).find("row 1 of 1"),
            std::string::npos);
}

// Candidates are rows of a table that is also read by a feature with one id per sample.
class CandidatePartViewTest : public PartViewTest {
 protected:
  CandidatePartViewTest() {
    JobConfig job;
    EXPECT_TRUE(ParseText(kJob, "job", &job).ok());
    job.mutable_model()->mutable_candidates()->set_feature("a");
    job.mutable_model()->mutable_candidates()->set_count(3);
    layout_ = MakePartLayout(job);
    FakeTables tables(&layout_);
    tables.candidates = {7, 2, 9};
    FakeSample first{{.5f}, {{1}, {3}}, 1, 2, false, -70};
    FakeSample second{{.25f}, {{2}, {3, 4}}, 0, 1, true, 1777627800500};
    part_ = tables.MakePart({first, second}, 10, F32);
  }
};

TEST_F(CandidatePartViewTest, AreReadWithThePositives) {
  const auto view = ReadPart(layout_, 2, part_);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->candidates.positives, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(view->candidates.indices.rows, (std::vector<uint32_t>{2, 1, 3}));
  EXPECT_EQ(view->candidates.log_q[0], FakeTables::LogQOf(7));
  EXPECT_EQ(view->candidates.positive_log_q[1], FakeTables::LogQOf(2));
  EXPECT_EQ(layout_.inputs.candidates.size(), 2u);
  EXPECT_EQ(layout_.candidate_segments[1].input, 6);
}

TEST_F(CandidatePartViewTest, WhatDoesNotFitIsRefusedByName) {
  using Header = NextBatchAnswerHeader;
  EXPECT_EQ(ErrorAfter([](Header* header) { header->clear_candidates(); }),
            "candidates: absent from a part of TRAIN_STREAM");
  EXPECT_EQ(ErrorAfter([](Header* header) {
              header->mutable_part()->mutable_id()->set_stream(VALID_STREAM);
            }),
            "candidates: present in a part of VALID_STREAM, but only parts of TRAIN_STREAM have "
            "candidates, and only if the job has model.candidates");
  EXPECT_EQ(ErrorAfter([](Header* header) { header->mutable_candidates()->set_num_candidates(4); }),
            "candidates.num_candidates: must be at most 3, got 4");
  EXPECT_THAT(
      ErrorAfter([](Header* header) { header->mutable_candidates()->set_num_candidates(2); }),
      testing::HasSubstr("candidates.indices"));
  EXPECT_THAT(ErrorAfter([](Header* header) {
                header->mutable_candidates()->mutable_log_q()->set_size_bytes(8);
              }),
              testing::HasSubstr("candidates.log_q"));
  EXPECT_THAT(
      ErrorAfter([](Header* header) { header->mutable_candidates()->clear_positive_log_q(); }),
      testing::HasSubstr("candidates.positive_log_q"));
  // The ids of feature "b" have row indices of their own, like those of "a".
  EXPECT_THAT(ErrorAfter([](Header* header) {
                header->mutable_tables(0)->set_num_rows(3);
                header->mutable_tables(0)->mutable_values()->set_size_bytes(36);
              }),
              testing::HasSubstr("candidates.indices"));
}

}  // namespace
}  // namespace satrap
