// FlexFlow's simulator exports a task graph in Graphviz' language; this makes Chakra traces of it, one per
// device, as Chakra's converter did (et_converter/flexflow2chakra_converter.py, removed in dd37d5a):
//   nodeK [label="{device_id=D|Name|Phase|COMP_NODE|simulated_run_time=MS}"]
//   nodeK
//   [label="{device_id=L|Name|Comm|COMM_SEND_RECV_NODE|src_device_id=S|dst_device_id=D|comm_size=B|..}"]
//   nodeA -> nodeB: B waits for A
// A communication is a send on S and a receive on D with tags of their own; its simulated duration is not
// used. Times are milliseconds, rounded to the format's microseconds. Who waits for a node of another device
// without a communication between them gets it told by a message of one byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/formats/chakra.h"

namespace armilla {

struct FlexflowOptions {
  // As the peer wrote them: durations are times taken as seconds, in cycles of `megahertz`; dependences on
  // nodes of other devices stay and dangle; communications wait only for nodes whose device_id (for
  // communications the number of a link) equals the rank; there is no metadata.
  bool as_peer = false;
  std::int64_t megahertz = 1000;
};

struct FlexflowTraces {
  std::vector<ChakraTrace> ranks;  // by device
  std::int64_t told = 0;           // messages of one byte, see above
};

// `name` is what messages call the file. Throws Error.
FlexflowTraces parse_flexflow(std::string_view text, const std::string& name, const FlexflowOptions& options);

}  // namespace armilla
