// Links as the collective library attains them.
#pragma once

#include "ir/study.h"

namespace armilla {

// Where CollectiveOptions::measured asks for it, the bandwidths of the machine's dimensions, and of the links
// that belong to them, become those that are attained (Dimension::efficiency, which is 1 then; `of_links`
// what they were).
inline void attain_links(Study& study) {
  if (!study.collectives.measured) return;
  for (Cable& cable : study.machine.graph.cables) {
    cable.there.scale(study.machine.dimensions[cable.dimension].efficiency);
    cable.back.scale(study.machine.dimensions[cable.dimension].efficiency);
  }
  for (Dimension& dimension : study.machine.dimensions) {
    if (dimension.efficiency < 1) dimension.of_links = dimension.bandwidth;
    dimension.bandwidth.value *= dimension.efficiency;
    dimension.efficiency = 1;
  }
}

}  // namespace armilla
