// Requests by their paths: what each API asks for becomes a generation, and its tokens an answer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "server/api.h"
#include "server/generation.h"
#include "server/http_front.h"

namespace assay::server {

// Used from the loop's thread alone, as are the listeners that it gives to the generator.
class Service {
 public:
  // `tokenizer`: null where the model has none; prompts are ids then, and answers too. The
  // generator and the tokenizer outlive it.
  Service(ServedModel model, Generator& generator, const engine::Tokenizer* tokenizer,
          std::optional<ChatTemplate> chat);
  ~Service();

  // Further lines of /metrics.
  void add_metrics(std::function<std::string()> lines);

  // Paths that need no key: they tell nothing of the model.
  static std::vector<std::string> free_paths();

  void serve(const ServedRequest& request, const std::shared_ptr<Answer>& answer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace assay::server
