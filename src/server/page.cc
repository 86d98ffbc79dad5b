#include "server/page.h"

namespace assay::server {

std::string_view page_html() {
  return R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>assay serve</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="page.css">
<script src="page.js" defer></script>
</head>
<body>
<header><h1 id="model">assay serve</h1><p id="state" role="status">Asking the server ...</p></header>
<noscript><p>This page needs scripts. The APIs work without them.</p></noscript>
<form id="unlock" hidden>
<label for="key">API key</label>
<div class="row"><input id="key" type="password" autocomplete="off" spellcheck="false" required>
<button>Use key</button></div>
<p class="mute">The key stays in the memory of this page and is gone when it is closed.</p>
</form>
<main id="served" hidden>
<section aria-label="What runs"><dl id="facts"></dl></section>
<section class="lines" aria-label="The last minute">
<figure><figcaption>New tokens/s</figcaption><output id="rate"></output>
<svg id="rate-line" role="img" viewBox="0 0 240 48" preserveAspectRatio="none"><polyline/></svg></figure>
<figure><figcaption>Batch</figcaption><output id="batch"></output>
<svg id="batch-line" role="img" viewBox="0 0 240 48" preserveAspectRatio="none"><polyline/></svg></figure>
<figure><figcaption>Queue</figcaption><output id="queue"></output>
<svg id="queue-line" role="img" viewBox="0 0 240 48" preserveAspectRatio="none"><polyline/></svg></figure>
<figure><figcaption>Memory</figcaption><output id="memory"></output>
<svg id="memory-line" role="img" viewBox="0 0 240 48" preserveAspectRatio="none"><polyline/></svg></figure>
</section>
<section aria-label="Try it">
<form id="ask">
<div class="row" role="radiogroup" aria-label="API">
<label><input type="radio" name="kind" value="completion" checked> Completion</label>
<label><input type="radio" name="kind" value="chat" id="chats"> Conversation</label>
</div>
<label for="prompt" id="prompt-label">Prompt</label>
<textarea id="prompt" rows="5" spellcheck="false" required>Once upon a time</textarea>
<details>
<summary>Parameters</summary>
<div class="parameters">
<label>New tokens <input name="max_tokens" type="number" min="1" step="1" value="128"></label>
<label>Temperature <input name="temperature" type="number" min="0" max="100" step="any" value="0"></label>
<label>Top-p <input name="top_p" type="number" min="0" max="1" step="any" value="1"></label>
<label>Top-k <input name="top_k" type="number" min="0" step="1" value="0"></label>
<label>Min-p <input name="min_p" type="number" min="0" max="1" step="any" value="0"></label>
<label>Repetition penalty <input name="repetition_penalty" type="number" min="0" max="100" step="any" value="1"></label>
<label>Seed <input name="seed" type="number" min="0" step="1" placeholder="any"></label>
<label>Stop text <input name="stop" type="text" placeholder="none" autocomplete="off"></label>
<label>System message <input name="system" type="text" placeholder="none" autocomplete="off"></label>
</div>
</details>
<div class="row"><button id="send">Generate</button>
<button id="stop" type="button" disabled>Stop</button>
<button id="clear" type="button">Clear</button></div>
</form>
<p id="told" role="status"></p>
<div id="answers" role="log" aria-label="Answers"></div>
</section>
</main>
</body>
</html>
)page";
}

}  // namespace assay::server
