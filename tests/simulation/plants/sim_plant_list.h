// The faults that can be planted into a world, to show that the simulation finds them.
// README.md lists them with the first seed that finds each; `simulate -- --faults` makes
// that table.

#ifndef SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANT_LIST_H_
#define SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANT_LIST_H_

#include "absl/types/span.h"

namespace satrap::simulation {

// In the order of the table. AllFaults (sim_plant_list.cc) says what each one means.
enum class Plant {
  kNone,
  kFiniteFlagLost,
  kEndsLate,
  kOwnStopOnly,
  kNoPatienceAtOne,
  kNoPlateauAtOne,
  kLateStopIgnored,
  kEpochTooMany,
  kPermitBeforeAnswer,
  kPermitTooMany,
  kNoWarmup,
  kPermitsOutOfOrder,
  kUpdateAnsweredEarly,
  kUpdatesLostAtOne,
  kOtherWeightAtOne,
  kForgetfulPuts,
  kForgetfulRequests,
  kForgetfulPushes,
  kForgetfulAcks,
  kForgetfulUpdates,
  kForgetfulLeases,
  kClosedCallsRun,
  kAcksLost,
  kTrainingLookups,
  kEvaluationLookups,
  kLookupCreatesRows,
  kBestNotRestored,
  kLaterRowsKept,
  kBestNotSaved,
  kTieIsBest,
  kNanIsBest,
  kOnWhileSaving,
  kProvenanceOffByOne,
  kOtherBlock,
  kOtherPart,
  kLastBatchLost,
  kPartTwice,
  kEpochEndsEarly,
  kNoCapacityLimit,
  kCapacityPerWorker,
  kRunsThroughPasses,
  kIdentityShuffle,
  kOtherShuffle,
  kOtherKeys,
  kL2Forgotten,
  kClipForgotten,
  kBoundForgotten,
  kOtherState,
  kSweepForgotten,
  kThawed,
  kClipFactorLostAtOne,
  kDenseSquaresLost,
  kApplyStepAnsweredEarly,
  kAttemptsJoined,
  kAnswersMixed,
  kChunkTakenTwice,
  kJoinedPassWindows,
  kChunkLossIsAnswer,
  kChunksKept,
  kMembersToldOnce,
  kEndedCallsAreOwn,
  kZombiesUpdate,
  kZombiesAsk,
  kZombiesLease,
  kMarksLate,
  kLateBeginCut,
  kCopyOutMissed,
  kLedgerOfOneLost,
  kWeightlessLost,
  kAbandonedLedgerLost,
  kCutInTest,
  kLastCutSkipped,
  kPinsIgnored,
  kFilesNotSynced,
  kEntriesNotSynced,
  kLateLink,
  kCommitAnsweredEarly,
  kEndsInCommit,
  kWindowsKept,
  kLedgerIgnored,
  kLeftLanesSend,
  kFinishIgnored,
  kStaleJob,
  kStaleLinkCounts,
  kListsOnce,
  kCutForgotten,
  kJobForgotten,
  kCompactedNotSynced,
  kKillDropsChange,
  kDroppedLost,
};

struct Fault {
  enum Worlds { kAll, kSync, kHybrid };
  Plant plant;
  Worlds worlds;             // in which it is looked for
  const char* says;          // what is wrong, for the table
  bool with_deaths = false;  // it is looked for in worlds with deaths
};
// A plant may be listed twice, for the worlds of either mode.
absl::Span<const Fault> AllFaults();

}  // namespace satrap::simulation

#endif  // SATRAP_TESTS_SIMULATION_PLANTS_SIM_PLANT_LIST_H_
