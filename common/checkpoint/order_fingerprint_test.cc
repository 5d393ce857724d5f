#include "common/checkpoint/order_fingerprint.h"

#include "gtest/gtest.h"

namespace satrap {
namespace {

JobConfig Job() {
  JobConfig job;
  job.set_mode(JobConfig::SYNC);
  job.set_seed(7);
  job.set_lanes(2);
  job.set_global_batch_size(64);
  job.mutable_data()->mutable_criteo_tsv();
  job.mutable_data()->add_train_files("day_*");
  job.mutable_data()->set_shuffle_rows(100);
  return job;
}

SplitList Files() {
  SplitList list;
  StreamFiles* train = list.add_streams();
  train->set_stream(0);
  for (const char* path : {"day_0", "day_1"}) {
    FileIdentity* file = train->add_files();
    file->set_path(path);
    file->set_bytes(100);
    file->set_content(train->files_size());
  }
  return list;
}

TEST(OrderFingerprintTest, ChangesWithEverythingThatFixesTheOrderOfSamples) {
  const uint64_t fingerprint = OrderFingerprint(Job(), Files());
  EXPECT_EQ(OrderFingerprint(Job(), Files()), fingerprint);
  const auto differs = [&](const char* what, auto change) {
    JobConfig job = Job();
    SplitList files = Files();
    change(&job, files.mutable_streams(0));
    EXPECT_NE(OrderFingerprint(job, files), fingerprint) << what;
  };
  differs("mode", [](JobConfig* job, StreamFiles*) { job->set_mode(JobConfig::HYBRID); });
  differs("seed", [](JobConfig* job, StreamFiles*) { job->set_seed(8); });
  differs("lanes", [](JobConfig* job, StreamFiles*) { job->set_lanes(3); });
  differs("batch", [](JobConfig* job, StreamFiles*) { job->set_global_batch_size(65); });
  differs("blocks", [](JobConfig* job, StreamFiles*) { job->mutable_data()->set_shuffle_rows(9); });
  differs("splits", [](JobConfig* job, StreamFiles*) { job->mutable_data()->set_split_bytes(9); });
  differs("parser", [](JobConfig* job, StreamFiles*) { job->mutable_data()->mutable_libsvm(); });
  differs("filter", [](JobConfig* job, StreamFiles*) {
    job->mutable_data()->mutable_seeded_split()->set_valid_fraction(0.5);
  });
  differs("size", [](JobConfig*, StreamFiles* train) { train->mutable_files(1)->set_bytes(101); });
  differs("content",
          [](JobConfig*, StreamFiles* train) { train->mutable_files(0)->set_content(5); });
  differs("order",
          [](JobConfig*, StreamFiles* train) { train->mutable_files()->SwapElements(0, 1); });
  differs("number of files",
          [](JobConfig*, StreamFiles* train) { train->mutable_files()->RemoveLast(); });
  differs("stream", [](JobConfig*, StreamFiles* train) { train->set_stream(1); });
}

TEST(OrderFingerprintTest, IsThatOfAnotherSizeAndOfFilesThatMoved) {
  const uint64_t fingerprint = OrderFingerprint(Job(), Files());
  JobConfig job = Job();
  job.mutable_embedding_ps()->set_replicas(5);
  job.mutable_nn_worker()->set_replicas(3);
  job.mutable_data_loader()->set_replicas(2);
  job.set_data_root("/elsewhere");
  job.mutable_data()->set_train_files(0, "moved/day_*");
  job.mutable_data()->set_max_bad_fraction(0.5);
  SplitList files = Files();
  files.mutable_streams(0)->mutable_files(0)->set_path("moved/day_0");
  EXPECT_EQ(OrderFingerprint(job, files), fingerprint);
}

}  // namespace
}  // namespace satrap
