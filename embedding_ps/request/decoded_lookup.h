// Decodes a Lookup into the form that the tables take. Checks the Lookup against the job, and
// limits the size of its answer.
//
// Thread-safe: a function of its arguments.

#ifndef SATRAP_EMBEDDING_PS_REQUEST_DECODED_LOOKUP_H_
#define SATRAP_EMBEDDING_PS_REQUEST_DECODED_LOOKUP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/buffer.h"
#include "embedding_ps/request/table_ownership.h"
#include "proto/hot.pb.h"

namespace satrap {

struct TableLookup {
  int table = 0;                    // position in the job
  absl::Span<const uint64_t> keys;  // in the request's payload
};

// The tables and keys of a Lookup, in the order of the request. Everything, including the size of
// the answer, is checked before the answer is allocated: rows are larger than keys, so a small
// request can ask for a huge answer. The size of the answer is that of its payload: values,
// presence bits and padding. INVALID_ARGUMENT names the field.
absl::StatusOr<std::vector<TableLookup>> DecodeLookup(const LookupHeader& header,
                                                      const Buffer& payload,
                                                      const TableOwnership& ownership,
                                                      WireDtype answer_dtype,
                                                      int64_t max_answer_bytes);

}  // namespace satrap

#endif  // SATRAP_EMBEDDING_PS_REQUEST_DECODED_LOOKUP_H_
