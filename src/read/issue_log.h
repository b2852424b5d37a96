// Reader of the issue and callback lines that ASTRA-sim 2 writes into its log (trace-enabled), and that
// Chakra's timeline visualizer takes alone:
//   issue,sys->id=0, tick=0, node->id=0, node->name=COMP_NODE_l0, node->type=4
//   callback,sys=0,tick=1500,node_id=0,node_name=COMP_NODE_l0
// Only the order of the fields counts, not what they are called; the type is optional. Whatever stands before
// "issue," or "callback," in a line is a log's prefix, and other lines are skipped. Linear.
#pragma once

#include <string>
#include <string_view>

#include "ir/formats/issue_log.h"

namespace armilla {

// Whether the first lines hold such a line.
bool is_issue_log(std::string_view beginning);
// `name` is what messages call the file. Throws Error with file:line for a field that is no number, a
// callback without issue, a node issued twice, and time running backwards.
IssueLog parse_issue_log(std::string_view text, const std::string& name);

}  // namespace armilla
