// What patterns (forward/patterns.h) compare and take over.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace armilla::packets {

// A state as words, to be written or read.
class Words {
 public:
  // Times count from `begin_ns`, sequence numbers from `base`, that of a flow.
  Words(std::vector<std::uint64_t>& words, bool reads, std::int64_t begin_ns)
      : words_(words), reads_(reads), begin_ns_(begin_ns) {}
  bool reads() const { return reads_; }
  void count_from(std::uint64_t base) { base_ = base; }

  template <class T>
  void value(T& value) {
    if (reads_) {
      value = static_cast<T>(words_[place_++]);
    } else {
      words_.push_back(static_cast<std::uint64_t>(value));
    }
  }
  // Of small numbers, in one word until `end_bits`.
  template <class T>
  void bits(T& value, int width) {
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    if (reads_) {
      if (filled_ == 0) packed_ = words_[place_++];
      value = static_cast<T>(packed_ >> filled_ & mask);
    } else {
      packed_ |= (static_cast<std::uint64_t>(value) & mask) << filled_;
    }
    filled_ += width;
  }
  void end_bits() {
    if (!reads_) words_.push_back(packed_);
    packed_ = 0;
    filled_ = 0;
  }
  void real(double& value) {
    auto bits = std::bit_cast<std::uint64_t>(value);
    this->value(bits);
    value = std::bit_cast<double>(bits);
  }
  void time(std::int64_t& ns) {
    std::int64_t since = ns - begin_ns_;
    value(since);
    if (reads_) ns = begin_ns_ + since;
  }
  void sequence(std::uint64_t& sequence) {
    std::uint64_t since = sequence - base_;
    value(since);
    if (reads_) sequence = base_ + since;
  }
  // The same of one that is zero as long as there is none.
  void sequence_if_any(std::uint64_t& sequence) {
    bool any = sequence != 0;
    value(any);
    if (any) this->sequence(sequence);
    if (reads_ && !any) sequence = 0;
  }

 private:
  std::vector<std::uint64_t>& words_;
  const bool reads_;
  const std::int64_t begin_ns_;
  std::uint64_t base_ = 0;
  std::size_t place_ = 0;
  std::uint64_t packed_ = 0;
  int filled_ = 0;
};

}  // namespace armilla::packets
