// Files of keys and values, words and numbers that the configuration files of ASTRA-sim 1.0 and 2.x share:
// names of collective algorithms and of scheduling policies, and numbers as C++ readers of JSON and streams
// take them.
//
// Source: astra-sim 2.x CollectiveImplLookup.cc and Sys.cc, 1.0 Sys.cc. `where` begins the message of every
// Error.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/formats/system_layer.h"
#include "read/file_format.h"

namespace armilla {

// "ring", "direct", "direct2" (two messages in flight), "halvingDoubling", "doubleBinaryTree", and "oneRing",
// "oneDirect", "oneHalvingDoubling", which ignore the dimensions.
StreamAlgorithm stream_algorithm(std::string_view word, const std::string& where);

// Throws for more algorithms than dimensions and for one that spans all dimensions beside others.
void check_algorithms(const std::vector<StreamAlgorithm>& algorithms, std::size_t dimensions,
                      const std::string& where);
// One warning for all kinds whose list is shorter: the dimensions it leaves out take no part.
void warn_about_short_lists(const SystemLayer& system, const std::string& where,
                            std::vector<std::string>& warnings);

IntraDimensionOrder intra_dimension_order(std::string_view word, const std::string& where);
InterDimensionOrder inter_dimension_order(std::string_view word, const std::string& where);
Decomposition stream_decomposition(std::string_view word, const std::string& where);
DimensionKind stream_dimension_kind(std::string_view word, const std::string& where);

// ASTRA-sim drops the fraction of a number where it wants a whole one; so does this, with a warning.
std::int64_t truncated_count(std::string_view text, const std::string& where, std::int64_t lowest,
                             std::vector<std::string>& warnings);
// A finite number between the bounds.
double real_between(std::string_view text, const std::string& where, double lowest, double highest);
double link_bandwidth(std::string_view text, const std::string& where);  // GB/s, more than 0
double link_latency(std::string_view text, const std::string& where);    // ns

// A value and what errors call its place.
struct Located {
  std::string text, where;
};
using Words = std::map<std::string, Located, std::less<>>;
// "key: value" pairs, which may be spread over lines. Throws Error for files of another kind, keys that are
// not among these, and keys that stand twice.
Words read_key_words(const std::string& path, FileKind kind, std::string_view what,
                     std::span<const std::string_view> keys);
const Located* find_word(const Words& words, std::string_view key);  // nullptr: not there
const Located& word_at(const Words& words, std::string_view key, const std::string& path);

// LogGP parameters are single-precision numbers in ASTRA-sim.
struct BusNumbers {
  double l = 0, o = 0, g = 0, gap_per_byte = 0;
};
void set_bus(SystemLayer& system, const BusNumbers& numbers);

}  // namespace armilla
