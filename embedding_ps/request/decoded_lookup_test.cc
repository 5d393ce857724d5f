#include "embedding_ps/request/decoded_lookup.h"

#include <string>
#include <vector>

#include "common/rpc/payload.h"
#include "gtest/gtest.h"

namespace satrap {
namespace {

constexpr int64_t kNoLimit = int64_t{1} << 40;

TableOwnership TwoTables() {
  TableOwnership ownership;
  ownership.tables = {{4, 3}, {9, 16}};
  return ownership;
}

// A Lookup under construction, of two keys in each of two tables.
struct LookupCall {
  LookupCall() {
    rpc::PayloadBuilder builder;
    for (const uint32_t id : {4, 9}) {
      TableKeys* table = header.add_tables();
      table->set_table(id);
      table->set_num_keys(2);
      builder.Reserve<uint64_t>(2, table->mutable_keys());
    }
    builder.Allocate();
    for (const TableKeys& table : header.tables()) {
      builder.Fill<uint64_t>(table.keys())[0] = 10 * table.table();
      builder.Fill<uint64_t>(table.keys())[1] = 10 * table.table() + 1;
    }
    payload = builder.Take();
  }

  absl::StatusOr<std::vector<TableLookup>> Decode(WireDtype dtype = F32,
                                                  int64_t max_answer_bytes = kNoLimit) const {
    return DecodeLookup(header, payload, TwoTables(), dtype, max_answer_bytes);
  }
  void ExpectRefused(const std::string& message) const {
    const absl::Status status = Decode().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message(), message);
  }

  LookupHeader header;
  Buffer payload;
};

TEST(DecodedLookupTest, GivesTheKeysOfEachTableByItsPositionInTheJob) {
  const LookupCall call;
  const auto tables = call.Decode();
  ASSERT_TRUE(tables.ok()) << tables.status();
  ASSERT_EQ(tables->size(), 2u);
  EXPECT_EQ((*tables)[0].table, 0);
  EXPECT_EQ((*tables)[0].keys, (std::vector<uint64_t>{40, 41}));
  EXPECT_EQ((*tables)[1].table, 1);
  EXPECT_EQ((*tables)[1].keys, (std::vector<uint64_t>{90, 91}));
}

TEST(DecodedLookupTest, ATableMayBeNamedOnce) {
  LookupCall call;
  call.header.mutable_tables(1)->set_table(4);
  call.ExpectRefused("tables.table: the request names table 4 twice");
}

TEST(DecodedLookupTest, OneSectionMayNotServeTwoTables) {
  LookupCall call;
  *call.header.mutable_tables(1)->mutable_keys() = call.header.tables(0).keys();
  call.ExpectRefused(
      "tables.keys: the section of table 9 at byte 0 overlaps tables.keys of table 4");
}

TEST(DecodedLookupTest, EmptySectionsOverlapNothing) {
  LookupCall call;
  call.header.mutable_tables(1)->set_num_keys(0);
  call.header.mutable_tables(1)->mutable_keys()->set_offset_bytes(0);
  call.header.mutable_tables(1)->mutable_keys()->set_size_bytes(0);
  EXPECT_TRUE(call.Decode().ok()) << call.Decode().status();
}

TEST(DecodedLookupTest, TheAnswerIsBoundedBeforeItIsAllocated) {
  const LookupCall call;
  // Each table has a section of values and one of presence bits, and each section begins at a
  // multiple of 64 bytes. The values of two rows have 2 * 3 * 4 bytes in the first table, and 2 *
  // 16 * 4 bytes in the second.
  constexpr int64_t kBytes = (64 + 64) + (128 + 1);
  EXPECT_TRUE(call.Decode(F32, kBytes).ok());
  EXPECT_TRUE(call.Decode(F16, kBytes - 64).ok());
  EXPECT_FALSE(call.Decode(F16, kBytes - 65).ok());
  const absl::Status status = call.Decode(F32, kBytes - 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      status.message(),
      "tables.num_keys: the requested rows have 257 bytes, but a message can have at most 256: "
      "raise nn_worker.replicas, or lower global_batch_size");
}

}  // namespace
}  // namespace satrap
