// How `satrap retrieve` tells its result.
//
// Thread-safe: functions of their arguments.

#ifndef SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_
#define SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_

#include <string>
#include <vector>

#include "deploy/retrieve/retrieval.h"

namespace satrap {

// A line for each ranking and k, below a line of headings and one of counts.
std::string RetrievalTable(const RetrievalResult& result);

// One line: {"users":2,"items":4,"dim":8,"rankings":[{"ranking":"vectors","k":20,"recall":.5,
// "ndcg":.4,"hit_rate":.6,"mrr":.3},...]}.
std::string RetrievalJson(const RetrievalResult& result);

// A sentence for each count of what the user may not expect.
std::vector<std::string> RetrievalWarnings(const RetrievalResult& result);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_
