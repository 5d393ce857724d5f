#include "deploy/coordinator/rendezvous_entries.h"

#include <string>

#include "gtest/gtest.h"

namespace satrap {
namespace {

absl::StatusCode Set(RendezvousEntries* entries, const std::string& key, const std::string& value) {
  StoreSetRequest request;
  request.set_key(key);
  request.set_value(value);
  return entries->Set(request).status().code();
}

std::string Get(const RendezvousEntries& entries, const std::string& key) {
  StoreGetRequest request;
  request.set_key(key);
  const StoreGetAnswer answer = entries.Get(request);
  return answer.found() ? answer.value() : "not found";
}

TEST(RendezvousEntries, AKeyKeepsItsFirstValue) {
  RendezvousEntries entries;
  EXPECT_EQ(Get(entries, "rank/0"), "not found");
  EXPECT_EQ(Set(&entries, "rank/0", "a"), absl::StatusCode::kOk);
  EXPECT_EQ(Set(&entries, "rank/0", "a"), absl::StatusCode::kOk) << "the answer was lost";
  EXPECT_EQ(Set(&entries, "rank/0", "b"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Get(entries, "rank/0"), "a");
  EXPECT_EQ(Set(&entries, "rank/1", ""), absl::StatusCode::kOk);
  EXPECT_EQ(Get(entries, "rank/1"), "");
}

}  // namespace
}  // namespace satrap
