// Rank folding: which ranks must behave identically, by colour refinement.
//
// Ranks start with the colour of what they are: program, device, speed, their groups' types, routes. A round
// refines every rank's colour by those of the ranks it sends to, hears from, waits for, shares links with.
// When a round splits no colour, ranks of one colour have surroundings that look alike (colour refinement;
// Berkholz, Bonsma, Grohe 2017). In groups with symmetric schedules, a rank sees the others from where it
// stands: the sequence of their colours, begun at itself (Addressing::shift) or exclusive-or'ed with itself
// (exchange). In other groups it sees its position.
//
// Two more conditions make the classes exact (sim/plan/rank_classes.h). Messages that tell their labels apart
// neither by program nor by channel must not come to one link over as many hops, for then the order of their
// sources would matter; and of the peers of a node, no two of one class may match one receive. Ranks that
// break one become classes of their own, and colours are refined again. So do ranks with custom collectives
// or shared remote memory. Not folded: what is only symmetric in time, such as ranks that a symmetric run
// reaches by chance.
//
// Cost: a round is O(ranks x (families in use + peers of nodes) + hops of routed messages); two rounds where
// nothing splits.
#pragma once

#include "ir/study.h"
#include "sim/collective_plan.h"
#include "sim/plan/rank_classes.h"
#include "sim/plan/study_job.h"

namespace armilla {

// Each for itself where the study's network or what-if lets no rank stand for another.
RankClasses fold_ranks(const StudyJob& input, CollectivePlanner& planner);

}  // namespace armilla
