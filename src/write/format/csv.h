// CSV as in RFC 4180, with LF line ends: a cell with a comma, a quote or a line break is quoted, quotes are
// doubled. The first record is the header.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace armilla {

class Csv {
 public:
  explicit Csv(const std::vector<std::string_view>& header);

  Csv& cell(std::string_view text);
  Csv& cell(std::int64_t number);
  Csv& cell(double number);  // the shortest text that reads back as the same number; empty when not finite
  Csv& cell(Bytes bytes) { return cell(bytes.value); }
  Csv& cell(Bandwidth bandwidth) { return cell(bandwidth.value); }
  Csv& cell(Time time);  // seconds, exactly
  void end_record();

  const std::string& text() const { return text_; }

 private:
  void separate();

  std::string text_;
  bool first_ = true;
};

// Seconds with as many of the twelve decimals as there are: "0.0000125".
std::string exact_seconds(Time time);

}  // namespace armilla
