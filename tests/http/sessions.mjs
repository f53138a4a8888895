// Coding sessions as a daemon sees them: their hooks, and the transcripts that they write.
import assert from "node:assert/strict";
import {appendFileSync, mkdirSync, statSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";

import {Daemon, newSpace, scratch} from "./daemon.mjs";

const begin = Date.parse("2026-01-31T08:00:00Z");
/// The n-th second of a transcript.
export const second = (n) => new Date(begin + n * 1_000).toISOString();

const entry = (type, uuid, at, content) => ({
  type,
  uuid,
  sessionId: "of no interest",
  timestamp: typeof at === "number" ? second(at) : at,
  message: {role: type, content},
});
/// What somebody has typed.
export const said = (uuid, at, text) => entry("user", uuid, at, text);
/// What was answered: a text, or all items of a content.
export const answered = (uuid, at, content) =>
    entry("assistant", uuid, at, typeof content === "string" ? [{type: "text", text: content}] : content);
/// What tools gave back.
export const results = (uuid, at, ...items) =>
    entry("user", uuid, at, items.map((each) => ({type: "tool_result", ...each})));

/// A file that grows.
export class Transcript {
  constructor(path) {
    this.path = path;
    mkdirSync(dirname(path), {recursive: true});
    writeFileSync(path, "");
  }
  /// Lines: objects, or texts as they are. How many bytes that were.
  append(...lines) {
    const text = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
    return this.write(text);
  }
  /// Without an end of the line.
  write(text) {
    appendFileSync(this.path, text);
    return Buffer.byteLength(text);
  }
  /// In the place of all that was there.
  rewrite(...lines) {
    writeFileSync(this.path, "");
    return this.append(...lines);
  }
  get size() { return statSync(this.path).size; }
}

/// A daemon that reads transcripts below a directory of its own.
export class Sessions {
  static async start(t, {store = "memory:", args = ["--test-clock"], env = {}, shared = false} = {}) {
    const home = scratch(t);
    const options = {store, args: ["--transcript-root", home, ...args], env: {HOME: home, ...env}};
    return new Sessions(await (shared ? Daemon.shared(options) : Daemon.start(t, options)), home);
  }
  constructor(daemon, home, space = newSpace()) { Object.assign(this, {daemon, home, space}); }
  /// The same in a space that nobody has used.
  apart() { return new Sessions(this.daemon, this.home); }

  at(path) { return `/v1/${this.space}/${path}`; }
  one(id) { return this.at(`transcripts/sessions/${encodeURIComponent(id)}`); }
  transcript(name = "transcript.jsonl") { return new Transcript(join(this.home, this.space, name)); }

  /// Any body; whatever it is, the session goes on.
  async send(body, options = {}) {
    const raw = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await this.daemon.request("POST", this.at("transcripts/hooks"), {raw, ...options});
    assert.deepEqual([answer.status, answer.json], [200, {continue: true}], answer.text.slice(0, 300));
    return answer;
  }
  hook(session_id, hook_event_name, more = {}, options = {}) {
    return this.send({session_id, hook_event_name, ...more}, options);
  }
  /// A session that has a prompt and a transcript.
  start(id, transcript, more = {}) {
    return this.hook(id, "SessionStart", {cwd: "/code/shop", transcript_path: transcript.path, ...more});
  }
  /// A hook that says nothing but that the transcript has grown.
  nudge(id) { return this.hook(id, "PostToolUse"); }
  async read(id) {
    await this.nudge(id);
    await this.advance("2s");
  }

  async advance(by) { return Date.parse((await this.daemon.expect(200, "POST", "/v1/_/clock", {advance: by})).now); }
  session(id) { return this.daemon.expect(200, "GET", this.one(id)); }
  async sessions(query = "") {
    return (await this.daemon.expect(200, "GET", this.at(`transcripts/sessions${query}`))).items;
  }
  /// All of them, page by page.
  async messages(id, limit = 1_000) {
    const all = [];
    for (let after = ""; after !== null;) {
      const page = await this.daemon.expect(
          200, "GET", `${this.one(id)}/messages?limit=${limit}${after && `&after=${encodeURIComponent(after)}`}`);
      assert.ok(page.items.length <= limit);
      all.push(...page.items);
      after = page.next;
    }
    return all;
  }
  async uuids(id) { return (await this.messages(id)).map((each) => each.uuid); }
  /// The window and the run of a session.
  key(id) { return this.daemon.expect(200, "GET", this.at(`debouncers/transcripts/keys/${encodeURIComponent(id)}`)); }
  /// Runs of a session that have ended, and how many hooks each was for.
  async runs(id) {
    const {items} = await this.daemon.expect(200, "GET", this.at("workers/transcripts/attempts?limit=1000"));
    return items.filter((each) => each.value.key === id).map((each) => each.value.count).reverse();
  }
}
