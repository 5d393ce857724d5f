// Decides whether a card can run this program; if not, one message says what is missing. CUDA's
// answers are passed as numbers, so every build can test this code.

#ifndef SATRAP_NN_WORKER_DEVICE_CUDA_CARD_CHECK_H_
#define SATRAP_NN_WORKER_DEVICE_CUDA_CARD_CHECK_H_

#include <string>

#include "absl/status/status.h"

namespace satrap {

// CUDA's answers about a machine and one of its cards. Versions are encoded as in CUDA: 13000 is
// 13.0.
struct CardAnswers {
  int program_version = 0;  // that this program was built with
  int driver_version = 0;   // the latest that the driver supports; 0: there is no driver
  std::string error;        // CUDA's words, if it could not count the cards
  int num_cards = 0;
  int card = 0;      // the one that is asked for, from 0
  std::string name;  // of that card
  int major = 0;     // its compute capability
  int minor = 0;
};

// FAILED_PRECONDITION, with the versions of driver and program, if there is no driver, if it is too
// old, if there is no such card, or if the card is older than compute capability 8.0.
absl::Status CheckCard(const CardAnswers& answers);

}  // namespace satrap

#endif  // SATRAP_NN_WORKER_DEVICE_CUDA_CARD_CHECK_H_
