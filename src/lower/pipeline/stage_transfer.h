// Messages of lower/pipeline/stage_program.h between neighbouring stages.
#pragma once

#include <cstdint>
#include <optional>

#include "lower/data/job_tables.h"
#include "lower/data/weight_buckets.h"
#include "lower/hybrid.h"
#include "lower/pipeline/stage_program.h"

namespace armilla {

// Whether tensor ranks receive parts, which an all-gather among them makes whole.
bool gathers_after_transfer(const Plan& plan);

// Whether a host that issues nodes stops at messages (PointToPoint::stops_host).
bool awaits_messages(const Plan& plan);

// What a slot of `chunk` on pipeline rank `rank` sends (`from_here`) or receives, in a forward or a backward
// pass; none at the ends of the model and between neighbours on one rank.
std::optional<PointToPoint> stage_transfer(const ShardedModel& model, const StageJob& job,
                                           const RoleChunk& chunk, std::int64_t rank, bool from_here,
                                           bool forward, JobTables& tables);

}  // namespace armilla
