// What a result says beside what was recorded: of each collective how it went and what held it up, and notes
// and warnings of what a user must not overlook.
#pragma once

#include "ir/machine.h"
#include "ir/result.h"
#include "ir/study.h"
#include "sim/run/ready_job.h"

namespace armilla {

// Of a job that has been played.
void describe_run(Result& result, const ReadyJob& job);

// Networks that know dimensions alone, on a graph of links.
void note_unseen_links(Result& result, const Machine& machine, const ComponentChoice& network);

}  // namespace armilla
