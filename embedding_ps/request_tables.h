// Checks, while a request is decoded, that it names each table at most once and that its sections
// of the payload do not overlap. The memory that a request costs is then bounded by its own bytes:
// no section can be used for the keys of several tables.
//
// Not thread-safe; one object per request.

#ifndef SATRAP_EMBEDDING_PS_REQUEST_TABLES_H_
#define SATRAP_EMBEDDING_PS_REQUEST_TABLES_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "embedding_ps/table_ownership.h"
#include "proto/hot.pb.h"

namespace satrap {

class RequestTables {
 public:
  // `ownership` is not owned and outlives this object.
  explicit RequestTables(const TableOwnership* ownership)
      : ownership_(*ownership), named_(ownership->tables.size(), false) {}

  // The position of the table in the job. INVALID_ARGUMENT if the job has no table with this id, or
  // if it was added before.
  absl::StatusOr<int> AddTable(uint32_t table_id);

  // Notes a section of the table added last. `field`: a literal, for the error.
  // REQUIRES: the section lies in the payload
  void AddSection(const Section& section, const char* field);

  // INVALID_ARGUMENT, naming both fields, if two of the sections overlap. Call it once, last.
  absl::Status CheckSectionsDisjoint();

 private:
  struct Range {
    uint64_t begin;
    uint64_t end;
    const char* field;
    uint32_t table_id;
  };

  const TableOwnership& ownership_;
  absl::InlinedVector<bool, 32> named_;  // by position
  absl::InlinedVector<Range, 32> ranges_;
  uint32_t last_table_id_ = 0;
};

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_REQUEST_TABLES_H_
