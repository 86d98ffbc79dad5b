"""The page of `assay serve` in a real Chromium: an answer streams, is stopped, and a key is asked for and kept nowhere.

usage: serve_page_test.py ASSAY SCREENSHOTS
"""

import json
import pathlib
import shutil
import sys
import time
import unittest
import urllib.request

import browser as chromium
from browser import TEXTS, cut, overlapping
from program import SKIPPED
from serve_test import ServeTest

CHATML = "{% for m in messages %}{{'<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n'}}{% endfor %}"
TOLD = "return document.querySelector('#told').textContent"
ANSWERS = "return [...document.querySelectorAll('#answers pre')].map(one => one.textContent)"


class ServePage(ServeTest):
    screenshots = pathlib.Path(sys.argv.pop(2)).resolve()

    @classmethod
    def setUpClass(cls):
        cls.screenshots.mkdir(parents=True, exist_ok=True)
        cls.browser = cls.enterClassContext(chromium.Browser())

    def open_page(self, url, **view):
        self.browser.view(**{"width": 1280, **view})
        self.browser.logs("browser")
        self.browser.logs("performance")
        self.browser.open(url + "/")

    def until(self, script, holds=bool):
        end = time.monotonic() + 60
        while not holds(found := self.browser.script(script)):
            self.assertLess(time.monotonic(), end, f"{script}: {found}")
            time.sleep(0.02)
        return found

    def fill(self, name, value):
        self.browser.script("document.querySelector('#ask').elements[arguments[0]].value = arguments[1]", name, value)

    def press(self, button):
        self.browser.script("document.querySelector(arguments[0]).click()", "#" + button)

    def until_served(self):
        self.until("return !document.querySelector('#served').hidden")

    def until_told(self):
        """The figures of an answer that has ended."""
        return self.until(TOLD, lambda told: told not in ("", "Generating ..."))

    def chatting_model(self):
        """A tiny Llama with the form of a conversation, as `assay serve` finds it in a checkpoint."""
        self.succeed("model", "make", "tiny-llama", "-o", "chatting")
        (self.folder / "chatting/tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
        return str(self.folder / "chatting")

    def expect_only_its_own(self, url, errors=()):
        """Nothing was asked of anybody else, and the console has no complaint but these."""
        messages = [json.loads(entry["message"])["message"] for entry in self.browser.logs("performance")]
        asked = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
        self.assertIn(url + "/status", asked)
        self.assertEqual([one for one in asked if not one.startswith((url + "/", "data:"))], [])
        complaints = [entry["message"] for entry in self.browser.logs("browser")]
        self.assertEqual([one for one in complaints if not any(error in one for error in errors)], [])

    def test_an_answer_streams_and_is_the_servers(self):
        url = self.serve("--context", "200")
        self.open_page(url)
        self.until_served()
        self.assertEqual(self.browser.script("return document.querySelector('#model').textContent"), "tiny-llama")
        facts = self.browser.script("return document.querySelector('#facts').textContent")
        for fact in ("llama", "fp32", "cpu", "compiled", "200"):
            self.assertIn(fact, facts)
        self.assertTrue(self.browser.script("return document.querySelector('#chats').disabled"), "there is no template")
        self.fill("prompt", "one two three")
        self.fill("max_tokens", "40")
        self.press("send")
        self.assertRegex(self.until_told(), r"\A\d+ prompt tokens in [\d.]+ ms, 40 new ones at [\d.]+ tokens/s, ended by length\.\Z")
        status, body = self.ask(url, "/v1/completions", {"prompt": "one two three", "max_tokens": 40})
        self.assertEqual(status, 200, body)
        self.assertEqual(self.browser.script(ANSWERS), ["one two three" + json.loads(body)["choices"][0]["text"]])
        self.fill("temperature", "101")
        self.browser.script("document.querySelector('#ask').noValidate = true")
        self.press("send")
        self.assertIn("temperature: expected", self.until_told())
        self.expect_only_its_own(url, ["400"])

    def test_a_conversation_goes_on(self):
        url = self.serve("--name", "<b>chatting</b>", model=self.chatting_model())
        self.open_page(url)
        self.until_served()
        self.assertEqual(self.browser.script("return document.querySelector('#model').textContent"), "<b>chatting</b>")
        self.press("chats")
        self.fill("max_tokens", "10")
        for turn, text in enumerate(("hello", "and more")):
            self.fill("prompt", text)
            self.browser.script("document.querySelector('#told').textContent = ''")
            self.press("send")
            self.until_told()
            self.assertEqual(self.browser.script(ANSWERS)[2 * turn], text)
        first, second = self.browser.script(ANSWERS)[1::2]
        messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": first}, {"role": "user", "content": "and more"}]
        status, body = self.ask(url, "/v1/chat/completions", {"messages": messages, "max_tokens": 10})
        self.assertEqual(status, 200, body)
        self.assertEqual(json.loads(body)["choices"][0]["message"]["content"], second)
        self.expect_only_its_own(url)

    def test_an_answer_is_stopped_and_its_slot_free(self):
        url = self.serve("--slots", "1", "--mode", "eager", "--threads", "1", model="gpt2-25m")
        self.open_page(url)
        self.until_served()
        self.fill("max_tokens", "1000")
        self.press("send")
        self.until(ANSWERS, lambda answers: len(answers[0]) > len("Once upon a time"))
        self.until("return document.querySelector('#batch').textContent", lambda batch: batch == "1 of 1")
        self.until("return document.querySelector('#rate').textContent", lambda rate: float(rate) > 0)
        self.press("stop")
        self.assertEqual(self.until_told(), "Stopped.")
        self.assertFalse(self.browser.script("return document.querySelector('#send').disabled"))
        self.until("return document.querySelector('#batch').textContent", lambda batch: batch == "0 of 1")
        self.assertIn('assay_requests_total{outcome="cancelled"} 1', self.ask(url, "/metrics")[1])
        points = self.browser.script("return document.querySelector('#rate-line polyline').getAttribute('points').split(' ').length")
        self.assertGreater(points, 1)

    def test_a_key_is_asked_for_refused_and_taken(self):
        (self.folder / "key").write_text("open-sesame")
        url = self.serve("--api-key-file", str(self.folder / "key"))
        self.open_page(url)
        self.until("return !document.querySelector('#unlock').hidden")
        for path in ("/", "/page.css", "/page.js"):
            status, text = self.ask(url, path)
            self.assertEqual(status, 200)
            self.assertNotIn("tiny", text)
        self.assertEqual(self.ask(url, "/status")[0], 401)
        self.assertNotIn("tiny-llama", self.browser.script("return document.documentElement.outerHTML + document.title"))
        state = "return document.querySelector('#state').textContent"
        for key in ("wrong", "schlüssel"):
            self.unlock(key)
            self.until(state, lambda told: told == "The server refused this key.")
            self.browser.script("document.querySelector('#state').textContent = ''")
        self.unlock("open-sesame")
        self.until_served()
        self.press("send")
        self.assertIn("new ones", self.until_told())
        kept = self.browser.script("return [localStorage.length, sessionStorage.length, document.cookie, location.href, "
                                   "document.documentElement.outerHTML.includes('sesame'), document.querySelector('#key').value]")
        self.assertEqual(kept, [0, 0, "", url + "/", False, ""])
        self.expect_only_its_own(url, ["401"])

    def unlock(self, key):
        self.browser.script("document.querySelector('#key').value = arguments[0]", key)
        self.browser.script("document.querySelector('#unlock').requestSubmit()")

    def test_it_is_readable_at_every_width_and_says_what_its_parts_are(self):
        url = self.serve("--context", "200", model=self.chatting_model())
        self.open_page(url)
        self.until_served()
        self.press("chats")
        self.press("send")
        self.until_told()
        self.until("return document.querySelector('#rate-line polyline').getAttribute('points').split(' ').length", lambda points: points > 3)
        for name, view in {"400": {"width": 400}, "1280": {"width": 1280}, "400-dark": {"width": 400, "dark": True},
                           "1280-dark": {"width": 1280, "dark": True}}.items():
            with self.subTest(view=name):
                self.browser.view(**view)
                for opened in ("false", "true"):
                    self.browser.script(f"document.querySelector('details').open = {opened}")
                    texts, _ = self.browser.script(TEXTS)
                    self.assertGreater(len(texts), 20)
                    self.assertLessEqual(self.browser.script("return document.documentElement.scrollWidth - innerWidth"), 0)
                    self.assertEqual(cut(texts), [])
                    self.assertEqual(overlapping(texts), [])
                self.browser.screenshot(self.screenshots / f"serve-{name}.png")
        paper = "return getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.browser.script(paper), "rgb(20, 20, 20)")
        self.browser.view(1280)
        self.assertEqual(self.browser.script(paper), "rgb(255, 255, 255)")
        nodes = self.browser.accessibility_tree()
        self.assertEqual([one for one in nodes if one[0] in ("button", "textbox", "spinbutton", "radio", "image") and not one[1]], [])
        for part in (("heading", "chatting"), ("button", "Generate"), ("textbox", "Prompt"), ("log", "Answers")):
            self.assertIn(part, nodes)

    def test_a_page_of_another_site_neither_frames_nor_reads_it(self):
        url = self.serve()
        with urllib.request.urlopen(url + "/") as answer:
            headers = answer.headers
        policy = headers["Content-Security-Policy"]
        for rule in ("default-src 'none'", "frame-ancestors 'none'", "form-action 'none'"):
            self.assertIn(rule, policy)
        self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_a_server_that_has_gone_is_told_of(self):
        url = self.serve()
        self.open_page(url)
        self.until_served()
        self.process.kill()
        self.until("return document.querySelector('#state').textContent", lambda told: told == "The server doesn't answer.")


if __name__ == "__main__":
    if chromium.missing():
        print(f"no {' and no '.join(chromium.missing())}: scripts/install-deps test")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
