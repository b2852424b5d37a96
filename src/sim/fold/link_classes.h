// Folding on the links of a graph: for networks that say what their messages use of it
// (network/message_links.h).
//
// Links are coloured beside ranks (sim/fold/rank_colours.h): a link by what messages of which colours cross
// it, with which share of theirs; a message by the colours of the links that it uses. What comes out is an
// equitable partition: of every channel, every rank of a class sends one message or none, to a rank of one
// class over links of the same classes; and every link of a class carries as many of them from that class.
// Rates of max-min sharing are unique, and filling up finds them from these numbers alone: link by link of a
// class, the level at which it is full is the same. So one flow for each class of them, counted as often as
// the links of its classes carry one, has the rate that all of them have; and with the rates the times are
// the same, event by event.
//
// Here the partition that hashes found is checked for what it is, so that nothing depends on hashes.
#pragma once

#include <cstdint>
#include <span>

#include "network/message_links.h"
#include "sim/fold/rank_messages.h"
#include "sim/plan/study_job.h"

namespace armilla {

// Colours of all ranks, then of all links; `messages` of links. O(hops log hops).
bool is_equitable(const StudyJob& input, const RankMessages& messages, const MessageLinks& links,
                  std::span<const std::uint32_t> colours);

// By the colours of links.
LinkClasses link_classes_of(std::span<const std::uint32_t> colours);

}  // namespace armilla
