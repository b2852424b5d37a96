// What of a run has a state, for who looks for its return.
#pragma once

#include "event/event_queue.h"
#include "network/network.h"
#include "sim/engine/collective_runner.h"
#include "sim/engine/messenger.h"
#include "sim/engine/rank_walker.h"
#include "sim/engine/recorder.h"
#include "sim/fold/walked_periods.h"
#include "sim/memo/memoised_collectives.h"

namespace armilla {

struct RunParts {
  EventQueue& queue;
  Network& network;
  RankWalker& walker;
  WalkedPeriods& periods;
  Recorder& recorder;
  Messenger& messages;
  CollectiveRunner& runner;
  MemoisedCollectives& memoised;
};

}  // namespace armilla
