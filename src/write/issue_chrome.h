// IssueLog -> a timeline in the Trace Event Format, one process per rank, one thread for local memory, remote
// memory, computation, communication and all else. Times are the format's microseconds: ticks divided by the
// clock in MHz.
//
// As the peer (chakra_timeline_visualizer) the same numbers are a thousandth of that, since it writes
// milliseconds, its object is one line with its own meta keys, and a name that tells no thread is an Error.
#pragma once

#include <string>

#include "ir/formats/issue_log.h"

namespace armilla {

struct IssueChromeOptions {
  double megahertz = 1000;  // ticks per microsecond: ASTRA-sim 2's are nanoseconds
  bool as_peer = false;
  std::int32_t ranks = 0;  // as the peer is told; 0: those of the log
};

std::string write_issue_chrome(const IssueLog& log, const IssueChromeOptions& options);

}  // namespace armilla
