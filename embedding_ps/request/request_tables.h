// Checks, while a request is decoded, that the request names each table at most once and that its
// payload sections do not overlap. So no section can serve as the keys of several tables, and the
// size of a request limits the memory that the request costs.
//
// Not thread-safe; one object per request.

#ifndef SATRAP_EMBEDDING_PS_REQUEST_REQUEST_TABLES_H_
#define SATRAP_EMBEDDING_PS_REQUEST_REQUEST_TABLES_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "embedding_ps/request/table_ownership.h"
#include "proto/hot.pb.h"

namespace satrap {

class RequestTables {
 public:
  // `ownership` is not owned and must outlive this object.
  explicit RequestTables(const TableOwnership* ownership)
      : ownership_(*ownership), named_(ownership->tables.size(), false) {}

  // Adds a table and returns its position in the job. INVALID_ARGUMENT if the job has no table with
  // this id, or if the table was added before.
  absl::StatusOr<int> AddTable(uint32_t table_id);

  // Notes a section of the most recently added table. `field`, a string literal, names the section
  // in the error. REQUIRES: the section lies in the payload
  void AddSection(const Section& section, const char* field);

  // INVALID_ARGUMENT, naming both fields, if two sections overlap. Call it once, after all sections
  // are added.
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

#endif  // SATRAP_EMBEDDING_PS_REQUEST_REQUEST_TABLES_H_
