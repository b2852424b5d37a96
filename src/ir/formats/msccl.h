// MscclAlgorithm: a collective in MSCCL's XML form, as the runtime's interpreter executes it
// (microsoft/msccl, src/collectives/device/msccl_interpreter.h; written by msccl-tools).
//
// Each GPU runs its threadblocks at once and the steps of a threadblock one after the other; a step may wait
// for a step of another threadblock of the same GPU. A threadblock sends to and receives from at most one
// peer each; messages between two GPUs over one channel stay in order. Buffers are cut into chunks of
// 1/chunks_per_loop of the call's bytes as ir/collective.h counts them (the larger of input and output). In
// place, input and output share memory: all-gather's input lies at its own position of the output,
// reduce-scatter's output at its own position of the input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/collective.h"

namespace armilla {

enum class MscclOperation : std::uint8_t {
  send,                      // s: source to the peer
  receive,                   // r: into the destination
  receive_copy_send,         // rcs: into the destination and on to the peer
  receive_reduce_send,       // rrs: plus the source, on to the peer, stored nowhere
  receive_reduce_copy,       // rrc: plus the source, into the destination
  receive_reduce_copy_send,  // rrcs: plus the source, into the destination and on to the peer
  copy,                      // cpy: source into the destination
  reduce,                    // re: source added to the destination
  nop                        // nop: only waits
};
inline bool receives(MscclOperation operation) {
  return operation >= MscclOperation::receive && operation <= MscclOperation::receive_reduce_copy_send;
}
inline bool sends(MscclOperation operation) {
  return operation == MscclOperation::send || operation == MscclOperation::receive_copy_send ||
         operation == MscclOperation::receive_reduce_send ||
         operation == MscclOperation::receive_reduce_copy_send;
}

enum class MscclBuffer : std::uint8_t { input, output, scratch };

struct MscclPlace {
  MscclBuffer buffer = MscclBuffer::input;
  std::int32_t offset = 0;  // chunks
};

struct MscclStep {
  MscclOperation operation = MscclOperation::nop;
  MscclPlace source, destination;
  std::int32_t count = 0;           // chunks
  std::int32_t awaited_block = -1;  // index into MscclGpu::blocks, -1: waits for nothing
  std::int32_t awaited_step = -1;
};

struct MscclBlock {
  std::int32_t id = 0;  // as in the file
  std::int32_t send_peer = -1, receive_peer = -1, channel = 0;
  std::vector<MscclStep> steps;
};

struct MscclGpu {
  std::int32_t scratch_chunks = 0;
  std::vector<MscclBlock> blocks;
};

struct MscclAlgorithm {
  std::string source;  // the file
  std::string name;
  std::string collective;              // the file's word for it
  std::optional<CollectiveKind> kind;  // empty for what has no name here
  bool in_place = false;
  std::int32_t chunks_per_loop = 1;
  std::vector<MscclGpu> gpus;
};

}  // namespace armilla
