#include "study/run/chunk_note.h"

#include <fmt/format.h>

#include "base/units_text.h"

namespace armilla {

// Of all collectives that pipelining holds back, the longest is worth a sentence.
std::string chunk_note(const Run& run) {
  const CollectiveRecord* longest = nullptr;
  const auto duration = [](const CollectiveRecord& record) { return record.finished - record.started; };
  for (const CollectiveRecord& record : run.result.collectives) {
    if (record.limit != CollectiveLimit::pipelining || record.better_chunks == 0) continue;
    if (longest == nullptr || duration(record) > duration(*longest)) longest = &record;
  }
  if (longest == nullptr) return {};
  const CollectiveCall& call = run.graph.collectives[longest->call];
  return fmt::format(
      "pipelining limits {} of {}: its {} chunk{} too little across dimensions; collectives.chunks "
      "{} "
      "would be faster",
      name_of(call.kind), to_text(call.bytes), longest->chunks,
      longest->chunks == 1 ? " overlaps" : "s overlap", longest->better_chunks);
}

}  // namespace armilla
