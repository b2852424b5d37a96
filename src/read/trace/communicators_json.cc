#include "read/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "read/file_format.h"

namespace armilla {
namespace {

constexpr std::string_view kExpected = R"(expected a JSON object such as {"1": [0, 1], "2": [2, 3]})";

// A cursor over the text that knows its line; nlohmann's parser tells no positions of values.
class CountingCursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingCursor(const char* at, int* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  CountingCursor& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  friend bool operator==(const CountingCursor& a, const CountingCursor& b) { return a.at_ == b.at_; }
  friend bool operator!=(const CountingCursor& a, const CountingCursor& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  int* line_;
};

// As events instead of a document: nlohmann's documents do not know where their values stood.
class GroupReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  GroupReader(std::string_view text, const std::string& name, std::int64_t ranks)
      : text_(text), name_(name), ranks_(ranks) {}

  Communicators read() {
    nlohmann::json::sax_parse(CountingCursor(text_.data(), &line_),
                              CountingCursor(text_.data() + text_.size(), &line_), this);
    return std::move(groups_);
  }

  bool start_object(std::size_t) override {
    if (depth_ != 0) refuse("an object");
    depth_ = 1;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(string_t& group) override {
    name_of_group_ = group;
    where_ = fmt::format("{}:{}: group '{:.60}'", name_, line_, group);
    if (groups_.contains(group)) throw Error(where_, "the group is given twice");
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ != 1) refuse("a list");
    ++depth_;
    members_.clear();
    return true;
  }
  bool end_array() override {
    --depth_;
    if (members_.empty()) throw Error(where_, "the group has no members");
    std::vector<std::int32_t> sorted = members_;
    std::sort(sorted.begin(), sorted.end());
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) throw Error(where_, fmt::format("rank {} is listed twice", *twice));
    groups_[name_of_group_] = {std::move(members_), where_};
    return true;
  }
  bool number_integer(number_integer_t value) override { return member(value < 0, 0, value); }
  bool number_unsigned(number_unsigned_t value) override {
    return member(false, value, static_cast<std::int64_t>(value));
  }

  bool null() override { refuse("null"); }
  bool boolean(bool) override { refuse("a truth value"); }
  bool number_float(number_float_t, const string_t& text) override { refuse(fmt::format("{:.60}", text)); }
  bool string(string_t& text) override { refuse(fmt::format("'{:.60}'", text)); }
  bool binary(binary_t&) override { refuse("binary data"); }

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 1: syntax error ..."
    const std::string_view whole = error.what();
    const auto place = whole.find(": ");
    const auto line = whole.find("line "), column = whole.find(", column ");
    std::string where = name_;
    if (place != std::string_view::npos && line < column && column < place) {
      where += fmt::format(":{}:{}", whole.substr(line + 5, column - line - 5),
                           whole.substr(column + 9, place - column - 9));
    }
    const std::string_view reason = place == std::string_view::npos ? whole : whole.substr(place + 2);
    throw Error(where, fmt::format("not valid JSON: {}", reason), std::string(kExpected));
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    if (depth_ == 0) throw Error(name_, fmt::format("holds {}", what), std::string(kExpected));
    throw Error(where_,
                fmt::format("{} where {} should be", what, depth_ == 1 ? "a list of ranks" : "a rank"),
                std::string(kExpected));
  }

  // Beyond the network's ranks, or beyond 32 bits: both are no rank.
  bool member(bool negative, std::uint64_t magnitude, std::int64_t value) {
    if (depth_ != 2) refuse("a number");
    if (negative || magnitude >= static_cast<std::uint64_t>(ranks_)) {
      throw Error(where_,
                  negative ? fmt::format("rank {} is negative", value)
                           : fmt::format("rank {} is not in the network", magnitude),
                  fmt::format("its ranks are 0 to {}", ranks_ - 1));
    }
    members_.push_back(static_cast<std::int32_t>(value));
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  std::int64_t ranks_;
  int line_ = 1;
  int depth_ = 0;
  std::string name_of_group_, where_;
  std::vector<std::int32_t> members_;
  Communicators groups_;
};

}  // namespace

Communicators parse_communicators(std::string_view text, const std::string& name, std::int64_t ranks) {
  return GroupReader(text, name, ranks).read();
}

Communicators read_communicators(const std::string& path, std::int64_t ranks) {
  const MappedFile file(path);
  require_kind(path, file.bytes(), FileKind::communicators, "a file of communicator groups");
  return parse_communicators({file.bytes().data(), file.bytes().size()}, path, ranks);
}

}  // namespace armilla
