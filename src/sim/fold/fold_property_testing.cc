#include "sim/fold/fold_property_testing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "ir/issued.h"
#include "sim/plan/effort.h"

namespace armilla {

RandomJob RandomJobs::make() {
  begin();
  const std::uint32_t steps = 2 + pick(7) + (on_torus_ ? 4 : 0);
  for (std::uint32_t step = 0; step < steps; ++step) add_step();
  return job_;
}

RandomJob RandomJobs::make_looping(std::uint32_t loops) {
  make_repeating(loops);
  shorten(kMostMessages);
  return job_;
}

void RandomJobs::make_repeating(std::uint32_t loops) {
  begin();
  loops_ = true;
  std::vector<std::uint32_t> first;
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p) {
    for (int i = 0; i < 3; ++i) append(p, NodeKind::delay, pick(2) * 1000);
  }
  const auto add_steps = [&](std::uint32_t steps) {
    for (std::uint32_t step = 0; step < steps; ++step) add_step();
  };
  add_steps(pick(3));
  for (; loops > 0; --loops) {
    first.clear();
    for (const Program& program : job_.graph.programs) first.push_back(program.size());
    for (std::size_t p = 0; p < job_.graph.programs.size(); ++p) append(p, NodeKind::delay, pick(3) * 500);
    add_steps(1 + pick(5));
    close_loops(first);
    add_steps(pick(3));
  }
}

RandomJob RandomJobs::make_drifting() {
  do begin();
  while (!has_stages());
  loops_ = true;
  for (Dimension& dimension : job_.study.machine.dimensions) {
    if (dimension.kind == DimensionKind::ring && !one_in(20)) dimension.kind = DimensionKind::switched;
  }
  const std::size_t stages = job_.graph.programs.size();
  for (std::size_t p = 0; p < stages; ++p) {
    for (int i = 0; i < 3; ++i) append(p, NodeKind::delay, pick(2) * 1000);
  }
  for (const bool forward : {true, false}) {
    std::vector<std::uint32_t> first;
    std::vector<std::int64_t> durations;
    for (std::size_t p = 0; p < stages; ++p) {
      first.push_back(job_.graph.programs[p].size());
      // Some slower than others by much, by little, or not at all.
      const std::int64_t more[] = {0, 0, 500'000, 1'300'000, 70'000};
      durations.push_back(10'000'000 + more[pick(5)]);
    }
    add_pass(forward, durations);
    close_loops(first);
    for (Program& program : job_.graph.programs)
      program.loops.back().more = job_.graph.programs.front().loops.back().more;
    if (one_in(4)) add_collective();
  }
  return job_;
}

bool RandomJobs::has_stages() const {
  const auto& groups = job_.graph.families[stage_family_].groups;
  return job_.graph.programs.size() > 1 &&
         job_.graph.programs.size() == static_cast<std::size_t>(axes_[stage_axis_]) &&
         std::ranges::all_of(groups, [](const auto& group) { return std::ranges::is_sorted(group); });
}

// Of one micro-batch through all stages: receive, compute, perhaps exchange something with the ranks of the
// stage, send on.
void RandomJobs::add_pass(bool forward, const std::vector<std::int64_t>& durations) {
  const auto stages = static_cast<std::int32_t>(durations.size());
  std::uint32_t family = pick(static_cast<std::uint32_t>(job_.graph.families.size()));
  const bool exchanges = one_in(2) && !mixes_programs(job_.graph.families[family]);
  const std::int64_t bytes = 1000 * pick(4);
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const auto p = static_cast<std::size_t>(stage);
    const std::int32_t previous = forward ? stage - 1 : stage + 1, next = forward ? stage + 1 : stage - 1;
    const auto add_message = [&](NodeKind kind, std::int32_t peer, std::int32_t boundary) {
      if (peer < 0 || peer >= stages) return;
      PointToPoint message;
      message.family = stage_family_;
      message.peer_kind = PeerKind::position;
      message.peer = peer;
      message.tag = 1000 + static_cast<std::uint32_t>(2 * boundary + (forward ? 0 : 1));
      message.bytes = Bytes(bytes);
      job_.graph.transfers.push_back(message);
      append(p, kind, job_.graph.transfers.size() - 1);
    };
    add_message(NodeKind::receive, previous, std::min(stage, previous));
    append(p, NodeKind::delay, static_cast<std::uint64_t>(durations[p]));
    Program& program = job_.graph.programs[p];
    if (previous >= 0 && previous < stages) {
      // What it computes waits for what it receives, whatever else `append` has it wait for.
      program.dependence.resize(program.first_dependence[program.size() - 1]);
      program.dependence.push_back(program.size() - 2);
      program.dependence.push_back(program.size() - (one_in(2) ? 3 : 4));
      program.first_dependence.back() = static_cast<std::uint32_t>(program.dependence.size());
    }
    if (exchanges) {
      CollectiveCall call;
      call.bytes = Bytes(12'000);
      call.family = family;
      job_.graph.collectives.push_back(call);
      append(p, NodeKind::collective, job_.graph.collectives.size() - 1);
    }
    add_message(NodeKind::send, next, std::min(stage, next));
    append(p, NodeKind::delay, 1000);
  }
}

RandomJob RandomJobs::make_on_links() {
  make();
  put_on_links();
  shorten(kMostMessages / 60);
  return job_;
}

RandomJob RandomJobs::make_looping_on_links(std::uint32_t loops) {
  make_repeating(loops);
  put_on_links();
  std::string& routing = job_.study.network.parameters.at("routing").value;
  const bool detours = routing == "valiant" || routing == "progressive";
  const double most_messages = detours ? kMostMessages / 20 : kMostMessages / 2;
  // Whose shortest loops are too long goes without detours.
  if (shorten(most_messages) > 2 * most_messages && detours) routing = "ecmp";
  return job_;
}

// One job of 70,000 messages took longer than all others together: the more over links, where rates are
// worked out at each that begins or ends, and over nodes at random, where each takes some thirty of them.
// Those that send many come into no state again, however often they go round.
double RandomJobs::shorten(double most_messages) {
  if (!loops_ && job_.study.collectives.chunks == 1) return 0;
  double messages = 0;
  try {
    CollectivePlanner planner(job_.study.machine, job_.study.collectives, promises_of(job_.study.network));
    messages =
        effort_of(job_.graph, issued_by(job_.graph), unfolded(job_.graph), planner, HUGE_VAL).all_messages;
  } catch (const Error&) {  // as it will be when it is played
  }
  if (messages <= most_messages) return messages;
  job_.study.collectives.chunks = 1;
  double left = 0;
  for (Program& program : job_.graph.programs) {
    for (Loop& loop : program.loops) {
      const std::uint32_t more =
          std::max(2U, static_cast<std::uint32_t>(loop.more * most_messages / messages));
      left = std::max(left, messages * more / loop.more);
      loop.more = more;
    }
  }
  return left;
}

RandomJob RandomJobs::make_on_torus() {
  on_torus_ = true;
  return make();
}

RandomJob RandomJobs::make_looping_on_torus(std::uint32_t loops) {
  on_torus_ = true;
  return make_looping(loops);
}

void RandomJobs::put_on_links() {
  const char* const routings[] = {"ecmp",    "first", "dimension-order", "up-down", "adaptive",
                                  "valiant", "ugal",  "progressive"};
  const std::string routing = one_in(2) ? "spray" : routings[pick(std::size(routings))];
  job_.study.network =
      parse_component("flow:routing=" + routing + (one_in(3) ? ",bandwidth-factor=0.97" : ""), "test");
  if (one_in(4)) return;
  make_graph();
  // Over several switches it does not run.
  for (Dimension& dimension : job_.study.machine.dimensions) {
    if (dimension.in_switch && dimension.in_switch->name == "nvls") dimension.in_switch.reset();
  }
}

// Leaves with all neighbours or with those of one place in them (rails), spines over the leaves, switches in
// nodes; one cable may be slower, groups be uneven.
void RandomJobs::make_graph() {
  Interconnect& graph = job_.study.machine.graph;
  const auto ranks = static_cast<std::uint32_t>(job_.graph.ranks);
  const auto figures = [&]() -> LinkFigures {
    const double bandwidths[] = {1, 2, 0.7, 1.0 / 3};
    const std::int64_t latencies[] = {0, 0, 100, 33};
    return {gigabytes_per_second(bandwidths[pick(ties_ ? 2 : 4)]), nanoseconds(latencies[pick(4)])};
  };
  const auto dimension = [&](std::uint32_t d) {
    return std::min(d, static_cast<std::uint32_t>(job_.study.machine.dimensions.size() - 1));
  };
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    graph.nodes.push_back({NetworkNodeKind::device, "gpu" + std::to_string(rank)});
  const auto add_switches = [&](std::uint32_t count, const char* name) {
    const auto first = static_cast<std::uint32_t>(graph.nodes.size());
    for (std::uint32_t i = 0; i < count; ++i)
      graph.nodes.push_back({NetworkNodeKind::switched, name + std::to_string(i)});
    return first;
  };
  // Of ranks in a node, or under a leaf.
  const auto inner = static_cast<std::uint32_t>(
      one_in(6) ? 1 + pick(ranks) : std::uint64_t(job_.study.machine.dimensions.front().size));
  const bool rails = one_in(2);
  const std::uint32_t nodes = (ranks + inner - 1) / inner, leaves = rails ? inner : nodes;
  const std::uint32_t first_leaf = add_switches(leaves, "leaf");
  const LinkFigures host = figures(), up = figures(), within = figures();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const std::uint32_t leaf = first_leaf + (rails ? rank % inner : rank / inner);
    graph.cables.push_back({rank, leaf, host, host, dimension(rails ? 1 : 0)});
  }
  if (rails && one_in(2)) {
    const std::uint32_t first = add_switches(nodes, "node");
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      graph.cables.push_back({rank, first + rank / inner, within, within, 0});
  }
  const std::uint32_t spines = 1 + pick(4), parallel = one_in(4) ? 2 : 1;
  const std::uint32_t first_spine = add_switches(spines, "spine");
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines * parallel; ++spine)
      graph.cables.push_back({first_leaf + leaf, first_spine + spine % spines, up, up, dimension(2)});
  }
  if (!one_in(4)) return;
  Cable& slow = graph.cables[pick(static_cast<std::uint32_t>(graph.cables.size()))];
  slow.there.bandwidth.value *= 0.5;
  if (one_in(2)) slow.back.latency = nanoseconds(500);
}

// What every program has had since its node `first` it does several times more, most of them not written.
void RandomJobs::close_loops(const std::vector<std::uint32_t>& first) {
  // Enough of them written for dependences that reach back three nodes.
  const std::uint32_t more = 1 + pick(60), copies = 4 + pick(2);
  for (std::size_t p = 0; p < first.size(); ++p) {
    Program& program = job_.graph.programs[p];
    const std::uint32_t period = program.size() - first[p];
    for (std::uint32_t shift = period; shift < copies * period; shift += period) {
      for (std::uint32_t node = first[p]; node < first[p] + period; ++node) {
        std::vector<std::uint32_t> after;
        for (const std::uint32_t dependence : program.dependences(node)) after.push_back(dependence + shift);
        program.add(program.kind[node], program.phase[node], program.name[node], program.layer[node],
                    program.payload[node], after);
      }
    }
    program.loops.push_back({first[p], program.size(), period, more});
  }
}

void RandomJobs::begin() {
  job_ = {};
  ties_ = one_in(2);
  lone_ = one_in(2);
  make_machine();
  make_groups();
  make_choices();
  make_what_if();
  lone_family_ = pick(static_cast<std::uint32_t>(job_.graph.families.size()));
}

void RandomJobs::add_step() {
  if (lone_ && !one_in(20)) {
    one_in(3) ? add_computation() : add_collective();
    return;
  }
  switch (pick(13)) {
    case 0:
    case 1:
    case 2:
      add_computation();
      break;
    case 3:
    case 4:
      add_shift();
      break;
    case 5:
    case 6:
      add_stage_message();
      break;
    case 7:
      if (job_.options.remote_memory.kind != RemoteMemoryKind::none) add_memory();
      break;
    case 8:
      if (one_in(3)) add_custom();
      break;
    case 9:
      add_incast();
      break;
    default:
      add_collective();
      break;
  }
}

void RandomJobs::add_cables(Dimension& dimension) {
  const auto size = static_cast<std::uint32_t>(dimension.size);
  for (std::uint32_t count = 1 + pick(2 * size); count > 0; --count) {
    const std::uint32_t a = pick(size), b = (a + 1 + pick(size - 1)) % size;
    dimension.cables.push_back({static_cast<std::int32_t>(a), static_cast<std::int32_t>(b)});
  }
}

void RandomJobs::make_machine() {
  Machine& machine = job_.study.machine;
  machine.name = "random";
  machine.device.memory_bandwidth = gigabytes_per_second(3);
  machine.device.kernels.emplace().processors = 8;
  std::int64_t ranks = 1;
  const std::uint32_t dimensions = 1 + pick(3);
  for (std::uint32_t d = 0; d < dimensions; ++d) {
    const std::int64_t most = 24 / ranks;
    if (most < 2) break;
    Dimension dimension;
    dimension.name = "d" + std::to_string(d);
    dimension.kind = static_cast<DimensionKind>(pick(3));
    if (on_torus_) dimension.kind = DimensionKind::ring;
    dimension.size = std::min<std::int64_t>(most, 2 + pick(dimensions == 1 ? 12 : 4));
    const double bandwidths[] = {1, 1, 2, 0.7, 3.3};
    dimension.bandwidth = gigabytes_per_second(bandwidths[pick(ties_ ? 2 : 5)]);
    dimension.latency = nanoseconds(std::vector<std::int64_t>{0, 50, 100, 33}[pick(ties_ ? 1 : 4)]);
    if (dimension.kind == DimensionKind::switched && one_in(3)) add_cables(dimension);
    ranks *= dimension.size;
    machine.dimensions.push_back(dimension);
  }
  job_.study.plan.ranks = ranks;
  job_.graph.ranks = ranks;
  if (one_in(8)) {
    const std::int64_t first = pick(static_cast<std::uint32_t>(ranks));
    machine.others.push_back({first, std::min<std::int64_t>(ranks - 1, first + pick(4)), machine.device});
    machine.others.back().device.memory_bandwidth = gigabytes_per_second(1.5);
  }
}

void RandomJobs::add_family(const std::vector<std::int64_t>& key_of_rank) {
  GroupFamily family;
  family.name = "family";
  std::map<std::int64_t, std::vector<std::int32_t>> groups;
  for (std::size_t rank = 0; rank < key_of_rank.size(); ++rank)
    groups[key_of_rank[rank]].push_back(static_cast<std::int32_t>(rank));
  family.group_of.assign(key_of_rank.size(), -1);
  const bool reversed = one_in(lone_ ? 30 : 8);
  for (auto& [key, ranks] : groups) {
    if (reversed) std::reverse(ranks.begin(), ranks.end());
    for (const std::int32_t rank : ranks)
      family.group_of[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(family.groups.size());
    family.groups.push_back(ranks);
  }
  job_.graph.families.push_back(std::move(family));
}

// A logical grid whose axes need not be those of the machine.
void RandomJobs::make_groups() {
  axes_.clear();
  std::int64_t rest = job_.graph.ranks;
  for (std::int64_t factor = 2; rest > 1; ++factor) {
    while (rest % factor == 0) {
      axes_.push_back(factor);
      rest /= factor;
    }
  }
  std::shuffle(axes_.begin(), axes_.end(), random_);
  if ((lone_ || on_torus_) && !one_in(3)) {  // those of the machine after all
    axes_.clear();
    for (const Dimension& dimension : job_.study.machine.dimensions) axes_.push_back(dimension.size);
  }
  while (axes_.size() > 3 || (axes_.size() > 1 && one_in(lone_ ? 6 : 3))) {
    axes_[axes_.size() - 2] *= axes_.back();
    axes_.pop_back();
  }
  const auto ranks = static_cast<std::size_t>(job_.graph.ranks);
  std::vector<std::int64_t> stage(ranks);
  std::int64_t stride = 1;
  stage_axis_ = pick(static_cast<std::uint32_t>(axes_.size()));
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    std::vector<std::int64_t> key(ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto r = static_cast<std::int64_t>(rank);
      const std::int64_t position = r / stride % axes_[axis];
      key[rank] = r - position * stride;
      if (axis == stage_axis_) stage[rank] = position;
    }
    if (axis == stage_axis_) stage_family_ = static_cast<std::uint32_t>(job_.graph.families.size());
    add_family(key);
    stride *= axes_[axis];
  }
  add_family(std::vector<std::int64_t>(ranks, 0));
  std::vector<std::int64_t> uneven(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) uneven[rank] = pick(3);
  if (one_in(5)) add_family(uneven);
  const std::int64_t programs = one_in(3) ? 1 : std::min<std::int64_t>(axes_[stage_axis_], 4);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    job_.graph.program_of.push_back(static_cast<std::uint32_t>(stage[rank] * programs / axes_[stage_axis_]));
  }
  job_.graph.names.add("node");
  for (std::int64_t p = 0; p < programs; ++p) {
    Program& program = job_.graph.programs.emplace_back();
    program.role = "role";
    if (one_in(3)) program.issue_time = nanoseconds(ties_ ? 100 : 10 + pick(300));
    append(static_cast<std::size_t>(p), NodeKind::delay, ties_ ? 0 : pick(3) * 100'000);
  }
}

void RandomJobs::make_choices() {
  Study& study = job_.study;
  const char* const algorithms[] = {"ring",
                                    "direct",
                                    "direct:window=2",
                                    "halving-doubling",
                                    "circulant",
                                    "double-binary-tree",
                                    "ring:direction=counter-clockwise",
                                    "bidirectional-ring",
                                    "sharp",
                                    "nvls",
                                    "multicast"};
  const std::size_t dimensions = study.machine.dimensions.size();
  study.collectives.decomposition = static_cast<Decomposition>(one_in(3) ? pick(4) : 0);
  if (lone_ && !one_in(8)) study.collectives.decomposition = static_cast<Decomposition>(pick(2));
  const bool flat = study.collectives.decomposition == Decomposition::flat;
  if (one_in(2)) {
    for (std::size_t d = 0; d < (flat ? 1 : dimensions); ++d)
      study.collectives.algorithms.emplace_back(algorithms[pick(std::size(algorithms))]);
  }
  for (Dimension& dimension : study.machine.dimensions) {
    if (dimension.kind == DimensionKind::switched && one_in(3))
      dimension.in_switch = CollectiveProtocol{one_in(2) ? "sharp" : "nvls", Time(0), Time(0), 1};
  }
  study.collectives.chunks = 1 + pick(4);
  study.collectives.active_chunks = 1 + pick(3);
  study.collectives.order = static_cast<ChunkOrder>(pick(3));
  study.collectives.charge_reductions = one_in(3);
  study.network = {"analytical", {}, "test"};
  if (one_in(5)) study.network.name = "analytical-unshared";
  if (one_in(5)) study.network = parse_component("analytical:switching=store-and-forward", "test");
  if (one_in(6)) {
    job_.options.remote_memory = {static_cast<RemoteMemoryKind>(1 + pick(3)), 100, 1, 0, 0};
    job_.options.remote_memory.npus_per_node = 1 + pick(3);
    job_.options.remote_memory.nodes = job_.graph.ranks;
  }
}

void RandomJobs::make_what_if() {
  WhatIf& what_if = job_.study.what_if;
  const auto ranks = static_cast<std::uint32_t>(job_.graph.ranks);
  if (one_in(6)) {
    const std::int64_t first = pick(ranks);
    what_if.ranks.push_back({{first, std::min<std::int64_t>(first + pick(2), ranks - 1)}, 1.5});
  }
  if (one_in(6)) {
    const std::int64_t first = pick(ranks);
    what_if.links.push_back({pick(static_cast<std::uint32_t>(job_.study.machine.dimensions.size())),
                             {first, std::min<std::int64_t>(first + pick(2), ranks - 1)},
                             0.5,
                             one_in(2) ? 1.0 : 3.0});
  }
  if (one_in(30)) what_if.jitter.deviation = 0.1;
}

bool RandomJobs::mixes_programs(const GroupFamily& family) const {
  const auto program = [&](std::int32_t rank) {
    return job_.graph.program_of[static_cast<std::size_t>(rank)];
  };
  return std::any_of(family.groups.begin(), family.groups.end(), [&](const auto& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](std::int32_t rank) { return program(rank) != program(group.front()); });
  });
}

std::uint32_t RandomJobs::append(std::size_t p, NodeKind kind, std::uint64_t payload) {
  Program& program = job_.graph.programs[p];
  std::vector<std::uint32_t> after;
  if (program.size() > 0) {
    if (loops_) {
      after.push_back(program.size() - 1 - (one_in(3) ? pick(std::min(3U, program.size())) : 0));
      return program.add(kind, Phase::other, 1, -1, payload, after);
    }
    const bool in_order = lone_ ? !one_in(30) : ties_ ? one_in(4) : !one_in(3);
    after.push_back(in_order ? program.size() - 1 : ties_ ? 0 : pick(program.size()));
  }
  return program.add(kind, Phase::other, 1, -1, payload, after);
}

void RandomJobs::add_computation() {
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p) {
    Work work;
    work.flops = Flops(100 * (1 + pick(ties_ ? 1 : 3)));
    // Some take the host longer (without a draw of their own).
    work.issues = work.flops.value == 200 ? 3 : 1;
    work.issues_behind = work.flops.value == 300 ? 2 : 0;
    job_.graph.works.push_back(work);
    append(p, NodeKind::compute, job_.graph.works.size() - 1);
  }
}

// Programs that share a group must all call, others need not.
void RandomJobs::add_collective() {
  CollectiveCall call;
  call.kind = kCollectiveKinds[pick(7)];
  call.bytes = Bytes(ties_ ? 12'000 : one_in(2) ? pick(4) * 1000 : pick(20'000));
  call.family = pick(static_cast<std::uint32_t>(job_.graph.families.size()));
  if (lone_ && !one_in(6)) call.family = lone_family_;
  const GroupFamily& family = job_.graph.families[call.family];
  if (call.kind == CollectiveKind::broadcast || call.kind == CollectiveKind::reduce) {
    std::size_t least = family.groups.front().size();
    for (const auto& group : family.groups) least = std::min(least, group.size());
    call.root = static_cast<std::int32_t>(pick(static_cast<std::uint32_t>(least)));
  }
  // Some have kernels that computations feel, some the host waits for (without a draw of their own).
  call.processors = call.bytes.value % 3 == 0 ? 3 : 0;
  call.counted_on_device = call.bytes.value % 4 == 0;
  call.issues = call.bytes.value % 5 == 0 ? 4 : 1;
  job_.graph.collectives.push_back(call);
  const bool all = mixes_programs(family);
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p) {
    if (all || !one_in(4)) append(p, NodeKind::collective, job_.graph.collectives.size() - 1);
  }
}

// Everyone sends to one neighbour in a group and receives from the one on the other side.
void RandomJobs::add_shift() {
  PointToPoint there;
  there.family = pick(static_cast<std::uint32_t>(job_.graph.families.size()));
  there.peer_kind = PeerKind::shift;
  there.peer = one_in(2) ? 1 : -1;
  there.tag = one_in(3) ? 0 : static_cast<std::uint32_t>(job_.graph.transfers.size());
  there.bytes = Bytes(ties_ ? 1000 : pick(3) * 1000);
  const GroupFamily& family = job_.graph.families[there.family];
  if (std::any_of(family.groups.begin(), family.groups.end(), [](const auto& g) { return g.size() < 2; }))
    return;
  PointToPoint back = there;
  back.peer = -there.peer;
  job_.graph.transfers.push_back(there);
  job_.graph.transfers.push_back(back);
  const std::uint64_t sent = job_.graph.transfers.size() - 2;
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p) {
    append(p, NodeKind::send, sent);
    append(p, NodeKind::receive, sent + 1);
  }
}

// From one stage to another, where every stage has a program of its own.
void RandomJobs::add_stage_message() {
  const auto stages = static_cast<std::uint32_t>(axes_[stage_axis_]);
  if (job_.graph.programs.size() != stages || stages < 2) return;
  for (const std::vector<std::int32_t>& group : job_.graph.families[stage_family_].groups) {
    if (!std::is_sorted(group.begin(), group.end())) return;
  }
  const std::uint32_t from = pick(stages), to = (from + 1 + pick(stages - 1)) % stages;
  PointToPoint there;
  there.family = stage_family_;
  there.peer_kind = one_in(2) ? PeerKind::position : PeerKind::shift;
  const auto distance = static_cast<std::int32_t>(to) - static_cast<std::int32_t>(from);
  there.peer = there.peer_kind == PeerKind::position ? static_cast<std::int32_t>(to) : distance;
  there.tag = static_cast<std::uint32_t>(job_.graph.transfers.size());
  there.bytes = Bytes(pick(4) * 1000);
  PointToPoint back = there;
  back.peer = there.peer_kind == PeerKind::position ? static_cast<std::int32_t>(from) : -distance;
  job_.graph.transfers.push_back(there);
  job_.graph.transfers.push_back(back);
  append(from, NodeKind::send, job_.graph.transfers.size() - 2);
  append(to, NodeKind::receive, job_.graph.transfers.size() - 1);
}

// All ranks of a program send to one rank of another, which need not receive.
void RandomJobs::add_incast() {
  const std::uint32_t p = pick(static_cast<std::uint32_t>(job_.graph.programs.size()));
  const std::uint32_t rank = pick(static_cast<std::uint32_t>(job_.graph.ranks));
  if (job_.graph.program_of[rank] == p) return;
  PointToPoint to;
  to.peer = static_cast<std::int32_t>(rank);
  to.tag = static_cast<std::uint32_t>(job_.graph.transfers.size());
  to.bytes = Bytes(1000);
  job_.graph.transfers.push_back(to);
  append(p, NodeKind::send, job_.graph.transfers.size() - 1);
}

void RandomJobs::add_memory() {
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p)
    append(p, one_in(2) ? NodeKind::memory_load : NodeKind::memory_store, 100 * pick(5));
}

// A ring of messages in groups of one size.
void RandomJobs::add_custom() {
  CollectiveCall call;
  call.family = pick(static_cast<std::uint32_t>(job_.graph.families.size()));
  const GroupFamily& family = job_.graph.families[call.family];
  const std::size_t size = family.groups.front().size();
  if (size < 2 || std::any_of(family.groups.begin(), family.groups.end(),
                              [&](const auto& group) { return group.size() != size; }))
    return;
  CustomCollective& custom = job_.graph.custom.emplace_back();
  for (std::size_t member = 0; member < size; ++member) {
    CustomProgram& program = custom.members.emplace_back();
    for (const CustomNode::Kind kind : {CustomNode::Kind::send, CustomNode::Kind::receive,
                                        CustomNode::Kind::send, CustomNode::Kind::receive}) {
      CustomNode& node = program.nodes.emplace_back();
      node.kind = kind;
      const std::size_t peer = kind == CustomNode::Kind::send ? member + 1 : member + size - 1;
      node.peer = static_cast<std::int32_t>(peer % size);
      node.bytes = Bytes(1000);
      if (program.nodes.size() > 2) program.dependence.push_back(1);
      program.first_dependence.push_back(static_cast<std::uint32_t>(program.dependence.size()));
    }
  }
  call.custom = static_cast<std::int32_t>(job_.graph.custom.size() - 1);
  // Some have kernels that computations feel, some the host waits for (without a draw of their own).
  call.processors = call.bytes.value % 3 == 0 ? 3 : 0;
  call.counted_on_device = call.bytes.value % 4 == 0;
  call.issues = call.bytes.value % 5 == 0 ? 4 : 1;
  job_.graph.collectives.push_back(call);
  for (std::size_t p = 0; p < job_.graph.programs.size(); ++p)
    append(p, NodeKind::collective, job_.graph.collectives.size() - 1);
}

}  // namespace armilla
