// Reader of users' own collective schedules, for ASTRA-sim 2's "*-implementation-custom" and for MSCCL.
//
// - PREFIX: Chakra traces PREFIX.<position>.et of COMM_SEND, COMM_RECV and COMP nodes. Peers are positions in
//   the group; tags default to 0; control dependences count like data dependences. A message is comm_size
//   bytes, whatever the call asks for, or, without comm_size, the share msg_chunk_cnt / total_chunk_cnt of
//   the call (collectiveapi's newer converter). A computation lasts duration_micros, or 1 ns when that is 0.
// - the path of a file: MSCCL (ir/formats/msccl.h). Each step waits for the step before it in its threadblock
//   and for the step it names; a receiving and a sending half become a receive and a send, a reduction or a
//   local copy a computation of 1 ns, a nop one of nothing. A message is count / chunks_per_loop of the call.
// Sources: CustomAlgorithm.cc of ASTRA-sim 2; mscclang2chakra_converter.py of astra-sim/collectiveapi.
#pragma once

#include <cstdint>
#include <string>

#include "ir/custom_collective.h"
#include "ir/formats/msccl.h"

namespace armilla {

// Throws Error for what is missing, malformed, of other kinds, or for another number of members.
CustomCollective read_custom_collective(const std::string& path_or_prefix, std::int32_t members);

CustomCollective custom_collective(const MscclAlgorithm& algorithm);

// Whether the path is that of an MSCCL file, by its content, rather than the prefix of traces.
bool is_msccl_file(const std::string& path_or_prefix);

}  // namespace armilla
