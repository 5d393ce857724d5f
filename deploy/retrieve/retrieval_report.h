// Formats the result of `satrap retrieve`.
//
// Thread-safe: the functions depend only on their arguments.

#ifndef SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_
#define SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_

#include <string>
#include <vector>

#include "deploy/retrieve/retrieval.h"

namespace satrap {

// One line for each ranking and k, after a line of counts and a line of headings.
std::string RetrievalTable(const RetrievalResult& result);

// One line: {"users":2,"items":4,"dim":8,"rankings":[{"ranking":"vectors","k":20,"recall":.5,
// "ndcg":.4,"hit_rate":.6,"mrr":.3},...]}.
std::string RetrievalJson(const RetrievalResult& result);

// One sentence for each count that may surprise the user of the command.
std::vector<std::string> RetrievalWarnings(const RetrievalResult& result);

}  // namespace satrap

#endif  // SATRAP_DEPLOY_RETRIEVE_RETRIEVAL_REPORT_H_
