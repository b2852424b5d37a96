// Measurements against predictions: every row of the tables becomes a model, a machine and a plan by one rule
// (docs/validation.md), is run as any study is, and compared.
//
// The rule, for all rows alike:
//   model    layers, hidden size, heads, feed-forward and vocabulary of the row make a decoder. It has a
//            gated MLP, and its embeddings are tied, where that brings the parameters nearest to those of the
//            row; gated and tied, or neither, only where it is nearer by more than 1 %.
//            What these columns cannot say (experts, latent attention) is that of the zoo's model whose name
//            the row's begins with; rows without numbers are that model too. The vocabulary is padded to a
//            multiple of 128 x tp, as Megatron does.
//   machine  the zoo's device with the words of the row's, on the zoo's cluster of that device. Scale-up
//            domains are as large as the row says or, of racks, as large as divides the devices. The row's
//            inter-node bandwidth, or its part of the NICs or of the total that its notes count, replaces the
//            cluster's.
//   plan     the degrees and sizes of the row. Chunks per stage that an interleaved schedule does not tell:
//            the fewest that divide the layers. Micro-batches that are not told: one sample in a pipeline,
//            else the whole batch of a replica. Recomputation that is not published: the least that fits,
//            within 25 % (none, selective, full), or none where not even that fits. Experts are not
//            tensor-parallel, but in Megatron-LM's own tests. FSDP is ZeRO-3. Early Megatron (fp16, or
//            DeepSpeed by name) has unfused attention, does not overlap the exchange of gradients, waits
//            for messages between stages and cuts them over tensor ranks; DeepSpeed, InternEvo and plain
//            PyTorch add up
//            weight gradients in a pass of their own; Megatron's host needs 65 us per operator; MaxText's
//            custom remat is full recomputation; attention of PyTorch FSDP, torchtitan, nanotron, llm-foundry
//            and KempnerForge is FlashAttention-2; NeMo overlaps the tensor parallelism of dense models with
//            sequence parallelism, but Nemotron-H's. The host is eager, except where the row speaks of TPUs,
//            JAX, torch.compile or CUDA graphs.
#pragma once

#include <optional>
#include <vector>

#include "base/progress.h"
#include "ir/study.h"
#include "ir/validation.h"

namespace armilla {

// The prepared study of a measured step or peak. Throws Error.
Study study_of(const MeasuredPlan& plan, const std::string& where);
// That of the machine of a measured collective, for run_collective. Throws Error.
Study study_of(const MeasuredCollective& collective, const std::string& where);
// Of a row's collective, as reports call it: "all-reduce", "send-recv" (between two devices).
std::string collective_name(const std::string& text);
// How long the kernel of a sender takes, of as many messages in a row as Vidur times (the median), by TCP
// sockets: it is done when buffers hold its bytes, which it fills at the line's rate. `delivered` is what one
// message takes until it has been received, on the study's machine.
double sender_seconds(const Study& study, std::int64_t bytes, double delivered);
// The kernel as the models' own builder would give it. Throws Error for operations that no model has.
Work work_of(const MeasuredKernel& kernel, const std::string& where);
// The kernel that was timed with it, in front of it: where sgl_kernel multiplies in 8 bits (AIConfigurator's
// tables), what casts the rows of 16 that it begins with, each by its own scale.
std::optional<Work> timed_before(const MeasuredKernel& kernel);
// The same as a kernel in a layer of a serving engine does it, where the row is of one: what the kernels
// before have left in the device's L2 cache counts as the fewer bytes that its memory would move meanwhile,
// and rows of norms as those that fill multiprocessors.
Work within_layer(Work work, const MeasuredKernel& kernel, const Device& device);

// The study of a row's step or peak as it is played, with the recomputation that it is taken to have; nothing
// of other rows. Throws Error for a row that cannot be predicted.
std::optional<Study> study_of_row(const Measurement& row);

// Throws Error where no row of all files can be predicted.
Validation validate(const std::vector<MeasurementFile>& files, Progress& meter = no_progress());

}  // namespace armilla
