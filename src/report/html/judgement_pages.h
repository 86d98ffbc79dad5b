// The page of each judgement.
#pragma once

#include <string>

#include "analysis/compare/demands.h"
#include "gates/judge.h"
#include "portability/portability.h"
#include "routing/route.h"

namespace assay {

std::string gate_page(const Judgement& judgement);
std::string portability_page(const Portability& portability);
std::string route_page(const Route& route);
std::string comparison_page(const Comparison& comparison, const CompareDemands& demands);

}  // namespace assay
