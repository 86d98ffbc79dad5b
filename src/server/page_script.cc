#include "server/page.h"

namespace assay::server {

std::string_view page_js() {
  return R"page("use strict";

const at = (id) => document.getElementById(id);
const shownMs = 60000;
let samples = [];    // of the last minute, the newest last
let turns = [];      // messages of the conversation
let key = "";        // as it was typed: nothing else keeps it
let server = null;   // its latest status
let running = null;  // stops the answer under way

function ask(path, options = {}) {
  const headers = {"Content-Type": "application/json"};
  if (key) headers.Authorization = "Bearer " + key;
  return fetch(path, {...options, headers, cache: "no-store", credentials: "omit"});
}

function say(id, text, bad = false) {
  at(id).textContent = text;
  at(id).classList.toggle("bad", bad);
}

function bytes(count) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; count >= 1000 && unit + 1 < units.length; ++unit) count /= 1000;
  return (unit === 0 ? count : count.toPrecision(3)) + " " + units[unit];
}

// Without the right key the page shows nothing of the model.
function lock(refused) {
  running?.abort();
  server = null;
  samples = [];
  turns = [];
  key = "";
  at("served").hidden = true;
  at("unlock").hidden = false;
  for (const id of ["facts", "answers", "told", "rate", "batch", "queue", "memory"]) at(id).replaceChildren();
  document.title = at("model").textContent = "assay serve";
  say("state", refused ? "The server refused this key." : "The server asks for a key.", refused);
}

function showFacts() {
  const facts = [
    ["Architecture", server.architecture], ["Weights", server.dtype + ", " + bytes(server.weight_bytes)],
    ["Device", server.device], ["Mode", server.mode], ["Requests at a time", server.slots],
    ["Tokens a request", server.capacity], ["Keys and values", bytes(server.cache_bytes)], ["assay", server.version]];
  at("facts").replaceChildren(...facts.map(([name, value]) => {
    const box = document.createElement("div"), term = document.createElement("dt"), said = document.createElement("dd");
    term.textContent = name;
    said.textContent = value;
    box.append(term, said);
    return box;
  }));
  document.title = server.model + " - assay serve";
  at("model").textContent = server.model;
  at("chats").disabled = !server.chats;
  at("chats").parentElement.title = server.chats ? "" : "The model has no chat template.";
  if (!server.tokenizer) at("prompt-label").textContent = "Prompt: token ids, with spaces between";
}

// Draws the last minute, its newest sample at the right edge, from 0 to `most` or the largest value.
function draw(name, shown, values, most) {
  at(name).textContent = shown;
  const last = samples[samples.length - 1].now_ms, top = Math.max(most, ...values);
  const points = values.map((value, i) => {
    const x = 240 - 240 * (last - samples[i].now_ms) / shownMs, y = 46 - 44 * value / top;
    return x.toFixed(1) + "," + y.toFixed(1);
  });
  const line = at(name + "-line");
  line.firstElementChild.setAttribute("points", points.join(" "));
  line.setAttribute("aria-label", "The last minute; now " + shown);
}

function show(status) {
  const isNew = server === null || server.started_s !== status.started_s;
  if (isNew) samples = [];
  server = status;
  samples.push(status);
  while (status.now_ms - samples[0].now_ms > shownMs) samples.shift();
  if (isNew) showFacts();
  at("unlock").hidden = true;
  at("served").hidden = false;
  say("state", "");
  const rates = samples.map((one, i) => i === 0 ? 0 :
      1000 * (one.new_tokens - samples[i - 1].new_tokens) / Math.max(1, one.now_ms - samples[i - 1].now_ms));
  const rate = rates[rates.length - 1];
  draw("rate", rate >= 100 ? rate.toFixed(0) : rate.toFixed(1), rates, 1);
  draw("batch", status.running + " of " + status.slots, samples.map((one) => one.running), status.slots);
  draw("queue", status.waiting + " of " + status.most_waiting, samples.map((one) => one.waiting), 1);
  const resident = samples.map((one) => one.resident_bytes ?? 0);
  draw("memory", status.resident_bytes ? bytes(status.resident_bytes) : "unknown", resident, 1);
}

async function poll() {
  try {
    const answer = await ask("status");
    if (answer.status === 401) return lock(key !== "");
    if (!answer.ok) throw new Error();
    show(await answer.json());
  } catch {
    say("state", "The server doesn't answer.", true);
  }
  setTimeout(poll, 1000);
}

function parameters() {
  const body = {};
  for (const name of ["max_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed"]) {
    const value = at("ask").elements[name].value;
    if (value !== "") body[name] = Number(value);
  }
  const stop = at("ask").elements.stop.value;
  if (stop) body.stop = stop;
  return body;
}

function article(title, text) {
  const box = document.createElement("article"), head = document.createElement("h2"), said = document.createElement("pre");
  head.textContent = title;
  said.textContent = text;
  box.append(head, said);
  at("answers").append(box);
  return said;
}

// The events of a stream, as they come.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (held + value).split("\n\n");
    held = parts.pop();
    for (const part of parts) if (part.startsWith("data: ")) yield part.slice(6);
  }
}

async function messageOf(answer) {
  try {
    return (await answer.json()).error.message;
  } catch {
    return "Status " + answer.status + ".";
  }
}

// Streams the answer into `said`; its figures in words.
async function stream(path, body, said) {
  const answer = await ask(path, {method: "POST", body: JSON.stringify(body), signal: running.signal});
  if (!answer.ok) throw new Error(await messageOf(answer));
  let timings = {}, finish = "";
  for await (const event of events(answer.body)) {
    if (event === "[DONE]") {
      const prompt = timings.prompt_n + " prompt tokens in " + timings.prompt_ms.toFixed(1) + " ms";
      const speed = timings.predicted_per_second ? " at " + timings.predicted_per_second.toFixed(1) + " tokens/s" : "";
      return prompt + ", " + timings.predicted_n + " new ones" + speed + ", ended by " + finish + ".";
    }
    const json = JSON.parse(event);
    if (json.error) throw new Error(json.error.message);
    timings = json.timings ?? timings;
    const choice = json.choices[0];
    finish = choice.finish_reason ?? finish;
    said.append(choice.text ?? choice.delta.content ?? "");
  }
  throw new Error("The answer was cut before its end.");
}

async function generate(event) {
  event.preventDefault();
  if (running || !server) return;
  const prompt = at("prompt").value, chat = at("chats").checked, talk = turns;
  const body = {model: server.model, stream: true, ...parameters()};
  if (chat) {
    const system = at("ask").elements.system.value;
    talk.push({role: "user", content: prompt});
    body.messages = system ? [{role: "system", content: system}, ...talk] : talk;
    article("user", prompt);
  } else {
    body.prompt = server.tokenizer ? prompt : prompt.split(/\s+/).filter(Boolean).map(Number);
  }
  const said = article(chat ? "assistant" : "completion", chat ? "" : prompt), length = said.textContent.length;
  running = new AbortController();
  at("send").disabled = true;
  at("stop").disabled = false;
  say("told", "Generating ...");
  let lost = false;
  try {
    say("told", await stream(chat ? "v1/chat/completions" : "v1/completions", body, said));
  } catch (error) {
    lost = error.name !== "AbortError";
    if (server) say("told", lost ? error.message : "Stopped.", lost);
  }
  if (chat && lost) talk.pop();
  if (chat && !lost) talk.push({role: "assistant", content: said.textContent.slice(length)});
  running = null;
  at("send").disabled = false;
  at("stop").disabled = true;
}

at("ask").addEventListener("submit", generate);
at("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
at("stop").addEventListener("click", () => running?.abort());
at("clear").addEventListener("click", () => {
  running?.abort();
  turns = [];
  at("answers").replaceChildren();
  say("told", "");
});
at("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  key = at("key").value;
  at("key").value = "";
  if (/^[!-~]+$/.test(key)) poll();
  else lock(true);  // no header can carry it
});
poll();
)page";
}

}  // namespace assay::server
