// The events of a run (ir/derived/events.h): a table for the terminal, CSV, and JSON with schema
// armilla.events/1 (docs/formats/events.md). The terminal's last column is an event's share of the time of
// all computations, or of all communications, summed over ranks.
#pragma once

#include <string>

#include "ir/derived/events.h"
#include "write/text_table.h"

namespace armilla {

std::string write_events_text(const EventTable& table, const TextStyle& style);
std::string write_events_csv(const EventTable& table);
std::string write_events_json(const EventTable& table);

}  // namespace armilla
