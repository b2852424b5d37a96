#include "network/flit/flit_allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace armilla {

namespace {

// The first set bit from `pointer` on, or else the first of all.
std::uint32_t first_from(std::uint64_t bits, std::uint32_t pointer) {
  const std::uint64_t later = bits & ~std::uint64_t{0} << pointer;
  return static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : bits));
}

}  // namespace

FlitAllocators::FlitAllocators(FlitAllocator kind, std::int64_t iterations,
                               const std::vector<std::uint32_t>& sides, LaggedRandom& random)
    : kind_(kind), iterations_(iterations), sides_(sides), random_(random) {
  std::uint32_t all = 0, most = 0;
  for (const std::uint32_t side : sides_) {
    first_.push_back(all);
    all += side;
    most = std::max(most, side);
  }
  input_pointers_.resize(all);
  output_pointers_.resize(all);
  diagonals_.resize(sides_.size());
  to_input_.resize(most);
  to_output_.resize(most);
  owner_.assign(most, kNone);
}

void FlitAllocators::allocate(std::uint32_t router, const std::vector<Request>& requests,
                              std::uint32_t* match) {
  side_ = sides_[router];
  // Most routers have one request in most cycles. Pointers move as if it had been found the long way; the
  // other kinds move theirs, or draw, whatever is asked for.
  if (requests.size() == 1 && kind_ <= FlitAllocator::separable_output_first) {
    const auto [input, output, urgent] = requests.front();
    match[input] = output;
    input_pointers_[first_[router] + input] = after(output);
    output_pointers_[first_[router] + output] = after(input);
    return;
  }
  input_pointer_ = input_pointers_.data() + first_[router];
  output_pointer_ = output_pointers_.data() + first_[router];
  switch (kind_) {
    case FlitAllocator::islip:
      if (side_ <= 64 && iterations_ == 1)
        narrow_islip(requests, match);
      else
        islip(requests, match);
      break;
    case FlitAllocator::separable_input_first:
      separable(requests, match, true);
      break;
    case FlitAllocator::separable_output_first:
      separable(requests, match, false);
      break;
    case FlitAllocator::wavefront:
      wavefront(router, requests, match);
      break;
    case FlitAllocator::pim:
      pim(requests, match);
      break;
  }
}

void FlitAllocators::match_once(const std::vector<Request>& requests, std::uint32_t* match,
                                bool moves_pointers) {
  for (const Request& request : requests) {
    if (match[request.input] == kNone && owner_[request.output] == kNone)
      improve(to_output_[request.output], request.input,
              from_pointer(request.input, output_pointer_[request.output]), true);
  }
  for (const Request& request : requests) {
    if (to_output_[request.output].from == request.input)
      improve(to_input_[request.input], request.output,
              from_pointer(request.output, input_pointer_[request.input]), true);
  }
  for (const Request& request : requests) {
    if (to_input_[request.input].from != request.output) continue;
    match[request.input] = request.output;
    owner_[request.output] = request.input;
    if (!moves_pointers) continue;
    output_pointer_[request.output] = after(request.input);
    input_pointer_[request.input] = after(request.output);
  }
  withdraw_offers(requests);
}

void FlitAllocators::islip(const std::vector<Request>& requests, std::uint32_t* match) {
  // McKeown's rule: were pointers to move in later iterations, too, an input could starve.
  for (std::int64_t iteration = 0; iteration < iterations_; ++iteration)
    match_once(requests, match, iteration == 0);
  for (const Request& request : requests) owner_[request.output] = kNone;
}

// One iteration of islip, with the requests for an output in one word.
void FlitAllocators::narrow_islip(const std::vector<Request>& requests, std::uint32_t* match) {
  std::uint64_t outputs = 0;
  for (const Request& request : requests) {
    const std::uint64_t bit = std::uint64_t{1} << request.input, output = std::uint64_t{1} << request.output;
    words_to_output_[request.output] = (outputs & output) == 0 ? bit : words_to_output_[request.output] | bit;
    outputs |= output;
  }
  match_words(outputs, words_to_output_.data(), match);
}

std::uint64_t FlitAllocators::match_words(std::uint32_t router, std::uint64_t outputs,
                                          const std::uint64_t* words, std::uint32_t* match) {
  side_ = sides_[router];
  input_pointer_ = input_pointers_.data() + first_[router];
  output_pointer_ = output_pointers_.data() + first_[router];
  return match_words(outputs, words, match);
}

std::uint64_t FlitAllocators::match_words(std::uint64_t outputs, const std::uint64_t* words,
                                          std::uint32_t* match) {
  // Every output grants to the first input from its pointer on, then every input accepts the first output
  // from its own: the distances of islip() are smallest there.
  std::uint64_t inputs = 0;
  for (; outputs != 0; outputs &= outputs - 1) {
    const auto output = static_cast<std::uint32_t>(std::countr_zero(outputs));
    const std::uint32_t input = first_from(words[output], output_pointer_[output]);
    const std::uint64_t bit = std::uint64_t{1} << output;
    words_to_input_[input] = (inputs >> input & 1) == 0 ? bit : words_to_input_[input] | bit;
    inputs |= std::uint64_t{1} << input;
  }
  for (std::uint64_t left = inputs; left != 0; left &= left - 1) {
    const auto input = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint32_t output = first_from(words_to_input_[input], input_pointer_[input]);
    match[input] = output;
    output_pointer_[output] = after(input);
    input_pointer_[input] = after(output);
  }
  return inputs;
}

void FlitAllocators::separable(const std::vector<Request>& requests, std::uint32_t* match, bool input_first) {
  for (const Request& request : requests) {
    if (input_first)
      improve(to_input_[request.input], request.output,
              from_pointer(request.output, input_pointer_[request.input]), request.urgent);
    else
      improve(to_output_[request.output], request.input,
              from_pointer(request.input, output_pointer_[request.output]), request.urgent);
  }
  for (const Request& request : requests) {
    if (input_first && to_input_[request.input].from == request.output)
      improve(to_output_[request.output], request.input,
              from_pointer(request.input, output_pointer_[request.output]), request.urgent);
    if (!input_first && to_output_[request.output].from == request.input)
      improve(to_input_[request.input], request.output,
              from_pointer(request.output, input_pointer_[request.input]), request.urgent);
  }
  for (const Request& request : requests) {
    // Only those that both sides chose: an input whose choice was taken by another goes without this time.
    if (to_input_[request.input].from != request.output || to_output_[request.output].from != request.input)
      continue;
    match[request.input] = request.output;
    input_pointer_[request.input] = after(request.output);
    output_pointer_[request.output] = after(request.input);
  }
  withdraw_offers(requests);
}

void FlitAllocators::wavefront(std::uint32_t router, const std::vector<Request>& requests,
                               std::uint32_t* match) {
  if (requests.empty()) return;
  // Requests of one diagonal have different inputs and outputs, so that hardware grants them at once; here
  // their order decides nothing.
  on_diagonal_.assign(side_, kNone);
  next_on_diagonal_.resize(requests.size());
  bool all_urgent = true;
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    const std::uint32_t from_first = from_pointer(requests[i].output, diagonals_[router]) + requests[i].input;
    std::uint32_t& first = on_diagonal_[from_first < side_ ? from_first : from_first - side_];
    next_on_diagonal_[i] = std::exchange(first, i);
    all_urgent = all_urgent && requests[i].urgent;
  }
  for (const bool urgent : {true, false}) {
    if (!urgent && all_urgent) break;
    for (const std::uint32_t first : on_diagonal_) {
      for (std::uint32_t i = first; i != kNone; i = next_on_diagonal_[i]) {
        const Request& request = requests[i];
        if (request.urgent != urgent || match[request.input] != kNone || owner_[request.output] != kNone)
          continue;
        match[request.input] = request.output;
        owner_[request.output] = request.input;
      }
    }
  }
  for (const Request& request : requests) owner_[request.output] = kNone;
  diagonals_[router] = after(diagonals_[router]);
}

void FlitAllocators::pim(const std::vector<Request>& requests, std::uint32_t* match) {
  for (std::int64_t iteration = 0; iteration < iterations_; ++iteration) {
    // The pointers are where chance begins.
    for (std::uint32_t output = 0; output < side_; ++output) output_pointer_[output] = random_.below(side_);
    for (std::uint32_t input = 0; input < side_; ++input) input_pointer_[input] = random_.below(side_);
    match_once(requests, match, false);
  }
  for (const Request& request : requests) owner_[request.output] = kNone;
}

}  // namespace armilla
