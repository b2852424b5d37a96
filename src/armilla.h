// The library in one include: the nouns (Model, Plan, Graph, Machine, Study, Run, Result) and the functions that most
// programs need to get from one to the next. docs/library.md has an example of each. This is the public interface; what
// is installed besides are the headers that these include.
#pragma once

#include "base/config.h"
#include "base/error.h"
#include "base/units.h"
#include "base/units_text.h"
#include "cost/cost.h"
#include "ir/derived/backward.h"
#include "ir/derived/communication.h"
#include "ir/derived/layer_table.h"
#include "ir/derived/metrics.h"
#include "ir/graph.h"
#include "ir/machine.h"
#include "ir/model.h"
#include "ir/plan.h"
#include "ir/result.h"
#include "ir/study.h"
#include "lower/hybrid.h"
#include "read/read.h"
#include "read/study.h"
#include "sim/simulate.h"
#include "study/run.h"
#include "write/report.h"
#include "write/timeline.h"
#include "write/write.h"
#include "zoo/zoo.h"
