// Reports: a run for the terminal, the layers of a model and the events of a run as text, CSV and JSON, and
// deviations from the ideal machine in words.
#pragma once

#include <string>
#include <vector>

#include "ir/derived/events.h"
#include "ir/derived/layer_table.h"
#include "ir/profile.h"
#include "ir/study.h"
#include "write/text_table.h"

namespace armilla {

// The report of a run for the terminal: how long an iteration takes, where the time, the memory and the
// network's capacity went, and what to look at first. Models of every kind have the same one. Tables fit the
// width of the terminal; what has the same figures is one row. Definitions as in ir/derived/metrics.h and
// ir/derived/communication.h.

std::string write_run_text(const Run& run, const TextStyle& style);

// The layers of a model (ir/derived/layer_table.h) as text, CSV and JSON (schema "armilla.layers/1",
// docs/formats/layers_json.md).
//
// Times and cycles appear when somebody has filled in LayerTable::times. Totals count every parameter of the
// model, also those that no layer uses.

std::string write_layers_text(const LayerTable& table, const TextStyle& style);
std::string write_layers_csv(const LayerTable& table);
std::string write_layers_json(const LayerTable& table);

// The events of a run (ir/derived/events.h): a table for the terminal, CSV, and JSON with schema
// armilla.events/1 (docs/formats/events.md). The terminal's last column is an event's share of the time of
// all computations, or of all communications, summed over ranks.

std::string write_events_text(const EventTable& table, const TextStyle& style);
std::string write_events_csv(const EventTable& table);
std::string write_events_json(const EventTable& table);

// Measured times of events (ir/profile.h) as read_profile reads them: CSV, and JSON of the same schema.
std::string write_profile_csv(const Profile& profile);
std::string write_profile_json(const Profile& profile);

// A run's deviations from the ideal machine (ir/what_if.h) in words, for every report that shows them.

// "rank 13 takes 1.2 times as long to compute", one sentence per setting. Factors of 1 change nothing and are
// left out.
std::vector<std::string> what_if_settings(const Run& run);

// "an iteration takes 499.0 ms, 54.21 ms (12.2 %) more than the 444.8 ms without"; empty where nothing was
// simulated for comparison.
std::string what_if_effect(const Run& run);

}  // namespace armilla
