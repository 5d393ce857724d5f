#include "common/role/random_id.h"

#include <sys/random.h>

namespace satrap {

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) {
    // Once the kernel's pool is initialised, reads of up to 256 bytes are neither cut short nor
    // interrupted. Before that, early at boot, getrandom blocks.
    if (getrandom(&id, sizeof(id), 0) != sizeof(id)) id = 0;
  }
  return id;
}

}  // namespace satrap
