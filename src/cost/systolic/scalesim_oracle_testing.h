// For tests: rows of what SCALE-Sim answered (tests/reference/scalesim*.csv).
#pragma once

#include <cstdint>
#include <string>

#include "base/oracle_testing.h"
#include "ir/formats/systolic.h"

namespace armilla {

inline std::int64_t integer(const OracleRow& row, const std::string& column) {
  return std::stoll(row.at(column));
}

inline SystolicArray array_of(const OracleRow& row, const std::string& rows, const std::string& columns) {
  const std::map<std::string, Dataflow> dataflows = {{"os", Dataflow::output_stationary},
                                                     {"ws", Dataflow::weight_stationary},
                                                     {"is", Dataflow::input_stationary}};
  return {integer(row, rows), integer(row, columns), dataflows.at(row.at("dataflow"))};
}

}  // namespace armilla
