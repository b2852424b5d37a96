// CustomCollective -> Chakra traces, one per member, in the form that ASTRA-sim 2's "*-implementation-custom"
// takes (as astra-sim/collectiveapi converts MSCCL): COMM_SEND, COMM_RECV and COMP nodes with data
// dependences. Computations of less than a microsecond get no duration and last ASTRA-sim's 1 ns.
#pragma once

#include <optional>
#include <vector>

#include "ir/custom_collective.h"
#include "ir/formats/chakra.h"

namespace armilla {

// Without `call`, messages that are shares of the call stay shares (msg_chunk_cnt of total_chunk_cnt).
std::vector<ChakraTrace> custom_chakra(const CustomCollective& collective, std::optional<Bytes> call);

}  // namespace armilla
