// The layers of a model (ir/derived/layer_table.h) as text, CSV and JSON (schema "armilla.layers/1",
// docs/formats/layers_json.md).
//
// Times and cycles appear when somebody has filled in LayerTable::times. Totals count every parameter of the
// model, also those that no layer uses.
#pragma once

#include <string>

#include "ir/derived/layer_table.h"
#include "write/text_table.h"

namespace armilla {

std::string write_layers_text(const LayerTable& table, const TextStyle& style);
std::string write_layers_csv(const LayerTable& table);
std::string write_layers_json(const LayerTable& table);

}  // namespace armilla
