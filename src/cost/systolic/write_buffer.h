// The buffer of a systolic array's results and its way to DRAM, as SCALE-Sim counts it (write_buffer.py).
//
// Results are put into lines of as many words as DRAM takes in a cycle. Once more than half of the buffer is
// used, ceil(half / bandwidth) lines leave, one per cycle; the room they free is free at once, and a line
// that was cut short to leave counts as full unless it is the last of its group (so SCALE-Sim may count a few
// words more than there are). The array waits only when the buffer is full while lines leave. What remains at
// the end leaves in groups of the same size. Time: one step per group that leaves, not per word or cycle.
#pragma once

#include <cstdint>
#include <deque>

#include "cost/systolic/operand_stream.h"

namespace armilla {

class WriteBuffer {
 public:
  WriteBuffer(const OperandStream& results, std::int64_t words, std::int64_t bandwidth);

  // The results of lines [from, to), the first of which is demanded `stall` cycles late; returns the stall
  // after them.
  std::int64_t advance(std::int64_t from, std::int64_t to, std::int64_t stall);
  // Those of one line, in `cycle`; returns how long the array waits.
  std::int64_t write_line(std::int64_t line, std::int64_t cycle);
  void finish(std::int64_t cycle);

  const SystolicTraffic& traffic() const { return traffic_; }
  std::int64_t latest() const { return latest_; }  // the last cycle in which a line left

 private:
  struct Lines {
    std::int64_t count = 0, words = 0;  // each
  };
  void store(std::int64_t words);
  void flush();
  void drain(std::int64_t cycle);
  // How many more words until the next event: full while lines leave, or enough to send lines off.
  std::int64_t words_to_full() const;
  std::int64_t words_to_drain() const;

  OperandStream results_;
  std::int64_t words_, half_, bandwidth_;
  std::int64_t free_;
  std::int64_t pending_ = 0;  // stored since lines were last cut
  std::deque<Lines> lines_;
  std::int64_t drain_end_ = 0, latest_ = 0;
  bool drained_ = false;
  SystolicTraffic traffic_;
};

}  // namespace armilla
