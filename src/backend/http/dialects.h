// The dialects one by one, and what they share; private to backend/http.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/http/dialect.h"
#include "base/records/json.h"

namespace assay {

// Server that Ollama's API tells of where it names no other.
inline constexpr std::string_view kOllama = "ollama";

const Dialect& openai_dialect();
const Dialect& ollama_dialect();
const Dialect& llama_server_dialect();

// A list of ids; absent if there is none of that name.
std::optional<std::vector<int32_t>> ids_at(const Json& object, std::string_view name);
// The facts that llama.cpp tells in its list of models.
void read_meta(const Json& meta, ServerFacts& facts);
// Failure of class model_not_found that names what there is.
std::unexpected<HttpFailure> unknown_model(const std::string& model,
                                           const std::vector<std::string>& served);

}  // namespace assay
