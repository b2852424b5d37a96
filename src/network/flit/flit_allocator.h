// Allocators match requests of inputs for outputs, each input and each output at most once; what they are
// like, and where they come from:
//   islip                   outputs grant, inputs accept, round robin, pointers move with accepted grants
//                           (McKeown 1999)
//   separable_input_first   each input chooses one output, then each output one input (Dally and Towles,
//                           section 19.3)
//   separable_output_first  the other way round
//   wavefront               diagonal by diagonal of the matrix of requests, beginning one further each time
//                           (Tamir 1993)
//   pim                     outputs grant and inputs accept by chance (Anderson 1993)
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ir/flit.h"
#include "network/flit/lagged_random.h"

namespace armilla {

// Of one kind, for the routers of a network: every router has its own pointers, `side` inputs and as many
// outputs.
class FlitAllocators {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Request {
    std::uint32_t input, output;
    bool urgent = true;  // others come after those; islip and pim make no difference
  };

  FlitAllocators(FlitAllocator kind, std::int64_t iterations, const std::vector<std::uint32_t>& sides,
                 LaggedRandom& random);

  // No two requests for the same pair. `match` has a row of inputs, all kNone on entry.
  void allocate(std::uint32_t router, const std::vector<Request>& requests, std::uint32_t* match);
  // The same for islip with one iteration and at most 64 inputs: `outputs` has a bit for each output that is
  // asked for, and `words` for each of those a word with a bit for each input that asks. Returns the inputs
  // that have a match.
  std::uint64_t match_words(std::uint32_t router, std::uint64_t outputs, const std::uint64_t* words,
                            std::uint32_t* match);
  bool draws_without_requests() const { return kind_ == FlitAllocator::pim; }

 private:
  struct Offer {
    std::uint32_t from = kNone, distance = 0;
    bool urgent = false;
  };
  // Outputs grant to the nearest inputs from their pointers on, and inputs accept the nearest outputs; of
  // those that have no match yet.
  void match_once(const std::vector<Request>& requests, std::uint32_t* match, bool moves_pointers);
  void withdraw_offers(const std::vector<Request>& requests) {
    for (const Request& request : requests) {
      to_input_[request.input].from = kNone;
      to_output_[request.output].from = kNone;
    }
  }
  void islip(const std::vector<Request>& requests, std::uint32_t* match);
  std::uint64_t match_words(std::uint64_t outputs, const std::uint64_t* words, std::uint32_t* match);
  void narrow_islip(const std::vector<Request>& requests, std::uint32_t* match);
  void separable(const std::vector<Request>& requests, std::uint32_t* match, bool input_first);
  void wavefront(std::uint32_t router, const std::vector<Request>& requests, std::uint32_t* match);
  void pim(const std::vector<Request>& requests, std::uint32_t* match);
  std::uint32_t from_pointer(std::uint32_t place, std::uint32_t pointer) const {
    return place >= pointer ? place - pointer : place + side_ - pointer;
  }
  std::uint32_t after(std::uint32_t place) const { return place + 1 == side_ ? 0 : place + 1; }
  static void improve(Offer& best, std::uint32_t from, std::uint32_t distance, bool urgent) {
    if (best.from == kNone || (urgent && !best.urgent) || (urgent == best.urgent && distance < best.distance))
      best = {from, distance, urgent};
  }

  FlitAllocator kind_;
  std::int64_t iterations_;
  std::vector<std::uint32_t> sides_, first_;
  std::vector<std::uint32_t> input_pointers_, output_pointers_;  // of each router's inputs and outputs
  std::vector<std::uint32_t> diagonals_;
  LaggedRandom& random_;
  // Of the allocation under way.
  std::uint32_t side_ = 0;
  std::uint32_t* input_pointer_ = nullptr;
  std::uint32_t* output_pointer_ = nullptr;
  std::vector<Offer> to_input_, to_output_;
  std::array<std::uint64_t, 64> words_to_input_ = {}, words_to_output_ = {};
  std::vector<std::uint32_t> owner_;  // of an output
  std::vector<std::uint32_t> on_diagonal_,
      next_on_diagonal_;  // wavefront: requests, from the first diagonal on
};

}  // namespace armilla
