// An NN worker that computes on the CPU.

#include "nn_worker/rank_process.h"

int main(int argc, char** argv) { return satrap::RunRankProcess(argc, argv, /*devices=*/nullptr); }
