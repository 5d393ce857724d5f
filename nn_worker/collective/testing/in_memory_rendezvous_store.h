// The RendezvousStore of ranks that are threads of one test.

#ifndef SATRAP_NN_WORKER_COLLECTIVE_TESTING_IN_MEMORY_RENDEZVOUS_STORE_H_
#define SATRAP_NN_WORKER_COLLECTIVE_TESTING_IN_MEMORY_RENDEZVOUS_STORE_H_

#include <memory>

#include "common/role/rendezvous_store.h"

namespace satrap {

std::unique_ptr<RendezvousStore> NewInMemoryRendezvousStore();

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_COLLECTIVE_TESTING_IN_MEMORY_RENDEZVOUS_STORE_H_
