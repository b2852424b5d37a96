#include "trace/graph/merge_programs.h"

#include <map>
#include <tuple>
#include <unordered_map>

#include "base/splitmix.h"

namespace armilla {
namespace {

// Kinds, lanes and layers are left to the comparison: programs that differ in these alone are rare.
std::uint64_t hash_of(const Program& program) {
  std::uint64_t hash = program.size();
  for (std::uint32_t node = 0; node < program.size(); ++node) {
    hash = hash_with(hash, program.payload[node]);
    hash = hash_with(hash,
                     static_cast<std::uint64_t>(program.name[node]) << 32 | program.first_dependence[node]);
  }
  for (const std::uint32_t dependence : program.dependence) hash = hash_with(hash, dependence);
  return hash;
}

bool same(const Program& a, const Program& b) {
  return a.kind == b.kind && a.phase == b.phase && a.name == b.name && a.layer == b.layer &&
         a.payload == b.payload && a.lane == b.lane && a.file_id == b.file_id &&
         a.first_dependence == b.first_dependence && a.dependence == b.dependence;
}

// Calls that named different groups may have become equal with the families.
void merge_calls(Graph& graph) {
  std::map<std::tuple<CollectiveKind, std::int64_t, std::uint32_t, std::int32_t, std::int32_t,
                      ChunkPreference, std::int32_t>,
           std::uint32_t>
      known;
  std::vector<CollectiveCall> calls;
  std::vector<std::uint32_t> number;
  for (const CollectiveCall& call : graph.collectives) {
    const auto [found, fresh] = known.try_emplace(
        {call.kind, call.bytes.value, call.family, call.root, call.priority, call.preference, call.custom},
        static_cast<std::uint32_t>(calls.size()));
    if (fresh) calls.push_back(call);
    number.push_back(found->second);
  }
  if (calls.size() == graph.collectives.size()) return;
  graph.collectives = std::move(calls);
  for (Program& program : graph.programs) {
    for (std::uint32_t node = 0; node < program.size(); ++node) {
      if (program.kind[node] == NodeKind::collective) program.payload[node] = number[program.payload[node]];
    }
  }
}

}  // namespace

std::vector<std::uint32_t> merge_equal_programs(
    Graph& graph, const std::function<bool(std::uint32_t, std::uint32_t)>& may_merge) {
  merge_calls(graph);
  std::vector<std::uint32_t> kept;
  std::vector<std::uint32_t> number(graph.programs.size());
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash;  // into kept
  for (std::uint32_t program = 0; program < graph.programs.size(); ++program) {
    const std::uint64_t hash = hash_of(graph.programs[program]);
    const auto [first, last] = by_hash.equal_range(hash);
    auto like = first;
    while (like != last && !(may_merge(kept[like->second], program) &&
                             same(graph.programs[kept[like->second]], graph.programs[program])))
      ++like;
    if (like != last) {
      number[program] = like->second;
      // Frees the duplicate at once: traces of large jobs are many and alike.
      graph.programs[program] = {};
      continue;
    }
    number[program] = static_cast<std::uint32_t>(kept.size());
    by_hash.emplace(hash, number[program]);
    kept.push_back(program);
  }
  if (kept.size() == graph.programs.size()) return kept;
  std::vector<Program> programs;
  for (const std::uint32_t program : kept) programs.push_back(std::move(graph.programs[program]));
  graph.programs = std::move(programs);
  for (std::uint32_t& program : graph.program_of) program = number[program];
  return kept;
}

}  // namespace armilla
