// What ranks do between messages takes the same time whenever they do it, if they do it in step and their collectives meet
// nothing on their way.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/graph.h"
#include "ir/study.h"

namespace armilla {

// What else there is while the collectives run that are asked about.
enum class Beside : std::uint8_t {
  everything,  // all that the graph has
  messages,    // without the collectives of ranks of one program, which are at other times of these ranks
};

// Whether all ranks of a program fare alike and every collective of families of these names is lone
// (sim/memo/lone_groups.h). With Beside::messages it also asks for links that no messages of other ranks pass. Throws Error as simulate does. Cost: that of folding ranks.
bool is_undisturbed(const Graph& graph, const Study& study, const std::set<std::string>& families,
                    Beside beside);

}  // namespace armilla
