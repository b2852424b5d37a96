// Reader of MSCCL-XML, the collective algorithms that msccl-tools writes:
//   <algo name nchunksperloop ngpus coll inplace ...>
//     <gpu id i_chunks o_chunks s_chunks>
//       <tb id send recv chan>
//         <step s type srcbuf srcoff dstbuf dstoff cnt depid deps hasdep/>
// Source: microsoft/msccl-tools, msccl/language/ir.py, and the parser of microsoft/msccl. Attributes the
// runtime does not need for the schedule (proto, nchannels, minBytes ...) are not looked at; one that is
// nearly but not quite a known one is an Error. Linear in the file's size.
#pragma once

#include <span>
#include <string>

#include "ir/formats/msccl.h"

namespace armilla {

// `name` is what messages call the file. Throws Error with file:line:column.
MscclAlgorithm parse_msccl(std::span<const char> text, const std::string& name);
MscclAlgorithm read_msccl(const std::string& path);

}  // namespace armilla
