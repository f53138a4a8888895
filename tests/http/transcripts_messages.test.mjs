// /v1/{space}/transcripts: what is read of transcripts, and when
import assert from "node:assert/strict";
import {readFileSync, renameSync, rmSync, writeFileSync} from "node:fs";
import {test} from "node:test";

import {newSpace, until} from "./daemon.mjs";
import {answered, results, said, second, Sessions} from "./sessions.mjs";

const shared = await Sessions.start(undefined, {shared: true});
const {daemon} = shared;
process.on("exit", () => rmSync(shared.home, {recursive: true, force: true}));

// WORK-14, WORK-16, WORK-18 to WORK-21, WORK-U9, WORK-U13, WORK-B11.
test("messages are what users typed, and what was answered", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const tool = (id, name, input) => ({type: "tool_use", id, name, input});
  transcript.append(
      said("u1", 1, "Hello,\n\"wörld\" 🎉"),
      answered(
          "a1", 2,
          [
            {type: "thinking", thinking: "hm"}, {type: "text", text: "one"}, {type: "image", source: {}},
            {type: "text", text: "two"}, {type: "thinking", thinking: "so"}, tool("t1", "Read", {file: "a.txt"}),
            tool("t2", "Bash", {command: "ls"}), {type: "text", text: "  "}
          ]),
      results("r1", 3, {tool_use_id: "t1", content: "its text"}),
      results(
          "r2", 4,
          {tool_use_id: "t2", content: [{type: "text", text: "x"}, {type: "text", text: "y"}], is_error: true}),
      answered("a2", 5, [{type: "thinking", thinking: "only thought"}]),
      answered("a3", 6, [tool("t3", "Write", null)]));
  await world.start("s", transcript);
  await world.advance("2s");
  const done = {output: null, is_error: false, cut: false};
  const none = {thinking: null, tools: [], cut: false, prompt_id: 1};
  const items = (await world.messages("s")).map(({cursor, ...rest}) => rest);
  assert.deepEqual(items, [
    {...none, uuid: "u1", is_user: true, body: "Hello,\n\"wörld\" 🎉", created_at: second(1)},
    {
      ...none,
      uuid: "a1",
      is_user: false,
      body: "one\n\ntwo",
      thinking: "hm\n\nso",
      created_at: second(2),
      tools: [
        {...done, id: "t1", name: "Read", input: {file: "a.txt"}, output: "its text"},
        {...done, id: "t2", name: "Bash", input: {command: "ls"}, output: "x\n\ny", is_error: true},
      ]
    },
    {...none, uuid: "a2", is_user: false, body: "", thinking: "only thought", created_at: second(5)},
    {
      ...none,
      uuid: "a3",
      is_user: false,
      body: "",
      created_at: second(6),
      tools: [{...done, id: "t3", name: "Write", input: null}]
    },
  ]);
  transcript.append(results("r3", 7, {tool_use_id: "t3", content: "late"}));
  await world.read("s");
  assert.equal((await world.messages("s"))[3].tools[0].output, "late");
  const session = await world.session("s");
  assert.deepEqual([session.messages, session.prompts[0].text], [4, "Hello,\n\"wörld\" 🎉"]);
});

// WORK-U13.
test("an input that is no value here is shown as the text that it is", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const inputs = [`{"n":123456789012345678901234567890}`, "[1e309]", `{"a":1,"a":2}`, `{"$bytes":7}`, `{"a":tru}`];
  const line = JSON.stringify(
      answered("a", 1, inputs.map((_, i) => ({type: "tool_use", id: `t${i}`, name: "X", input: `input ${i}`}))));
  transcript.append(inputs.reduce((text, input, i) => text.replace(`"input ${i}"`, () => input), line));
  await world.start("s", transcript);
  await world.advance("2s");
  assert.deepEqual((await world.messages("s"))[0].tools.map((each) => each.input), inputs);
});

// WORK-U7, WORK-U8.
test("lines that are of no use are passed over", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const {uuid, ...anonymous} = said("x", 1, "no uuid");
  transcript.append(
      said("first", 1, "first"), "", "   \t ", "nonsense", "{", "[]", "5", "null", "\u0000\u0001",
      "{\"type\":\"user\",\"uuid\":\"half\",\"message\":{\"content\":\"ha", anonymous, said("", 1, "empty uuid"),
      said(5, 1, "a number"), said("u".repeat(300), 1, "too long"), said("e1", 1, ""), said("e2", 1, "  \n "),
      said("e3", 1, [{type: "text", text: "nobody typed this"}]), said("e4", 1, null), said("e5", 1, 5),
      {type: "user", uuid: "e6"}, {type: "user", uuid: "e7", message: null}, answered("e8", 1, []),
      answered("e9", 1, [{type: "text", text: ""}]), answered("e10", 1, [5, null, "x", {type: "text"}, {}]),
      said("l1", 1, "<local-command-stdout>x</local-command-stdout>"), said("l2", 1, "so: <local-command-caveat>"),
      said("l3", 1, "<command-name>/clear</command-name>"), {type: "system", uuid: "o1", message: {content: "x"}},
      {type: "summary", summary: "x"}, {uuid: "o2"}, {type: "file-history-snapshot", uuid: "o3"},
      said("last", 2, "last"));
  writeFileSync(transcript.path, Buffer.concat([
    readFileSync(transcript.path), Buffer.from([0x22, 0xff, 0xfe, 0x0a]),
    Buffer.from(`${JSON.stringify(said("crlf", 3, "crlf"))}\r\n`)
  ]));
  await world.start("s", transcript);
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["first", "last", "crlf"]);
  assert.equal((await world.session("s")).read.offset, transcript.size);
});

// WORK-U9.
test("messages are in the order of their times, and in that of the file where those are equal", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(
      said("c", 5, "x"), said("a", 1, "x"), said("d", 5, "x"), said("b", 3, "x"), said("e", 5, "x"),
      said("zone", "2026-01-31T10:00:02+02:00", "x"));
  await world.start("s", transcript);
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["a", "zone", "b", "c", "d", "e"]);
  transcript.append(said("early", 0, "x"));
  for (const at of [undefined, null, "soon", 5e20]) transcript.append({...said(`at ${at}`, 0, "x"), timestamp: at});
  await world.read("s");
  const items = await world.messages("s");
  assert.equal(items[0].uuid, "early");
  assert.deepEqual(
      items.slice(-4).map((each) => each.uuid), ["at undefined", "at null", "at soon", "at 500000000000000000000"]);
  const cursors = items.map((each) => each.cursor);
  assert.deepEqual(cursors, cursors.slice().sort(), "cursors sort");
});

test("messages are paged through, from any place", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const uuids = Array.from({length: 1_234}, (_, i) => `m${i}`);
  transcript.append(...uuids.map((uuid, i) => said(uuid, Math.floor(i / 10), `text ${i}`)));
  await world.start("s", transcript);
  await world.advance("2s");
  for (const limit of [1_000, 617, 100, 13])
    assert.deepEqual((await world.messages("s", limit)).map((each) => each.uuid), uuids);
  const all = await world.messages("s");
  const {items} = await daemon.expect(200, "GET", `${world.one("s")}/messages?after=${all[776].cursor}&limit=3`);
  assert.deepEqual(items.map((each) => each.uuid), ["m777", "m778", "m779"]);
  const end = await daemon.expect(200, "GET", `${world.one("s")}/messages?after=${all.at(-1).cursor}`);
  assert.deepEqual(end, {items: [], next: null});
  assert.equal((await daemon.expect(200, "GET", `${world.one("s")}/messages`)).items.length, 100);
});

// WORK-15, WORK-21, WORK-B11.
test("messages belong to the prompt of their time, and name a prompt that had no text", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  await world.start("s", transcript, {timestamp: second(10)});
  await world.hook("s", "UserPromptSubmit", {prompt: "second", timestamp: second(20)});
  await world.hook("s", "UserPromptSubmit", {prompt: "third", timestamp: second(30)});
  transcript.append(
      said("before", 1, "before"), said("one", 11, "one"), answered("two", 12, "x"),
      // The transcript has it a moment before its hook comes.
      said("three", 19, "second"), answered("four", 25, "x"), said("five", 31, "third"), answered("six", 99, "x"));
  await world.advance("2s");
  assert.deepEqual(
      (await world.messages("s")).map((each) => [each.uuid, each.prompt_id]),
      [["before", 1], ["one", 1], ["two", 1], ["three", 2], ["four", 2], ["five", 3], ["six", 3]]);
  assert.deepEqual((await world.session("s")).prompts.map((each) => each.text), ["one", "second", "third"]);
});

// WORK-U13.
test("outputs are cut, the last title is the name, and one list of things to do is kept", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const todo = (id, ...more) => [...more, {type: "tool_use", id, name: "TodoWrite", input: {todos: [id]}}];
  transcript.append(
      answered(
          "a", 1,
          [{type: "tool_use", id: "t", name: "Bash", input: {}}, {type: "tool_use", id: "f", name: "Bash", input: {}}]),
      results("r", 2, {tool_use_id: "t", content: "ü".repeat(50_001)}, {tool_use_id: "f", content: "ü".repeat(50_000)}),
      answered("list 1", 3, todo("d1")), answered("list 2", 4, todo("d2", {type: "text", text: "stays"})),
      {type: "custom-title", customTitle: "first"}, {type: "custom-title", customTitle: "é".repeat(300)},
      answered("list 3", 5, todo("d3")));
  await world.start("s", transcript);
  await world.hook("s", "UserPromptSubmit", {prompt: "prompt"});
  await world.advance("2s");
  const items = await world.messages("s");
  const [cut, whole] = items[0].tools;
  assert.deepEqual(
      [cut.output, cut.cut, whole.output, whole.cut], ["ü".repeat(50_000), true, "ü".repeat(50_000), false]);
  assert.deepEqual(
      items.slice(1).map((each) => [each.uuid, each.tools.map((tool) => tool.id)]),
      [["list 2", []], ["list 3", ["d3"]]]);
  assert.equal((await world.session("s")).name, "é".repeat(200));
});

test("a message of megabytes is cut, and says so", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(
      said("u", 1, "ü".repeat(2_000_000)),
      answered("a", 2, [{type: "tool_use", id: "t", name: "Write", input: {x: "x".repeat(3_000_000)}}]),
      said("v", 3, "short"));
  await world.start("s", transcript);
  await world.advance("2s");
  const [u, a, v] = await world.messages("s");
  assert.deepEqual([u.cut, a.cut, v.cut], [true, true, false]);
  assert.match(u.body, /^ü{100000,}$/);
  assert.deepEqual([a.tools[0].name, a.tools[0].input], ["Write", null]);
});

// WORK-U7.
test("without a prompt or a transcript nothing is read, and nothing fails", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const log = daemon.logs();
  await world.hook("no transcript", "UserPromptSubmit", {prompt: "x"});
  await world.hook("no prompt", "Stop", {transcript_path: transcript.path});
  await world.advance("2s");
  for (const id of ["no transcript", "no prompt"]) {
    await log(new RegExp(`warning transcript: .*${id}`));
    assert.deepEqual(await world.runs(id), [1]);
    assert.equal((await world.key(id)).status, "idle");
    assert.equal((await world.session(id)).messages, 0);
  }
  assert.equal((await daemon.expect(200, "GET", world.at("workers/transcripts"))).failed, 0);
  await world.hook("no prompt", "UserPromptSubmit", {prompt: "x"});
  await world.advance("2s");
  assert.deepEqual(await world.uuids("no prompt"), ["a"]);
});

// Reading on

// WORK-B10.
test("of a transcript that has grown only the new line is read", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(...Array.from({length: 200}, (_, i) => said(`m${i}`, i, "x".repeat(100))));
  await world.start("s", transcript);
  await world.advance("2s");
  let {read} = await world.session("s");
  assert.deepEqual(read, {offset: transcript.size, bytes: transcript.size});
  for (let i = 200; i < 205; ++i) {
    const added = transcript.append(said(`m${i}`, i, "y".repeat(i)));
    await world.read("s");
    const now = (await world.session("s")).read;
    assert.equal(now.offset, transcript.size);
    const more = now.bytes - read.bytes;
    assert.ok(more >= added && more <= added + 1, `${more} bytes were read for a line of ${added}`);
    read = now;
  }
  await world.read("s");
  assert.ok((await world.session("s")).read.bytes - read.bytes <= 1, "and of one that has not grown, nothing");
  assert.equal((await world.session("s")).messages, 205);
});

// WORK-B10.
test("a half-written last line waits for its other half", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const line = JSON.stringify(said("b", 2, "wörld 🎉"));
  const whole = transcript.append(said("a", 1, "x"));
  const bytes = Buffer.from(line);
  // Also in the middle of a character.
  const half = bytes.indexOf(0xc3) + 1;
  transcript.write(bytes.subarray(0, half));
  await world.start("s", transcript);
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["a"]);
  assert.equal((await world.session("s")).read.offset, whole);
  transcript.write(bytes.subarray(half));
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a"], "it may still go on");
  transcript.write("\n");
  await world.read("s");
  assert.deepEqual((await world.messages("s")).map((each) => each.body), ["x", "wörld 🎉"]);
});

// WORK-17, WORK-29, WORK-B10.
test("a transcript that is truncated, replaced or rewritten is read again, and nothing is stored twice", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const [a, b, c] = ["a", "b", "c"].map((uuid, i) => said(uuid, i, uuid.repeat(50)));
  transcript.append(a, b, c);
  await world.start("s", transcript);
  await world.advance("2s");
  transcript.rewrite(a, said("d", 4, "d"));
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a", "b", "c", "d"]);
  const other = world.transcript("other.jsonl");
  other.append(a, b, c, said("e", 5, "e"), said("f", 6, "f".repeat(500)));
  renameSync(other.path, transcript.path);
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a", "b", "c", "d", "e", "f"]);
  transcript.rewrite(said("g", 7, "g".repeat(5_000)), said("h", 8, "h"));
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a", "b", "c", "d", "e", "f", "g", "h"]);
  transcript.rewrite();
  await world.read("s");
  transcript.append(said("i", 9, "i"));
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
  const next = world.transcript("next.jsonl");
  next.append(a, said("j", 10, "j"));
  await world.hook("s", "Stop", {transcript_path: next.path});
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
  assert.equal((await world.session("s")).messages, 10);
});

// WORK-U15.
test("a repeated hook is taken once: by its Idempotency-Key, and by its own time", async () => {
  const world = shared.apart();
  const prompts = async (id) => (await world.session(id)).prompts.length;
  const headers = {"Idempotency-Key": "hook-1"};
  for (let i = 0; i < 3; ++i) await world.hook("s", "UserPromptSubmit", {prompt: "x"}, {headers});
  assert.equal(await prompts("s"), 1);
  assert.equal((await world.key("s")).count, 1);
  await world.hook("s", "UserPromptSubmit", {prompt: "x"}, {headers: {"Idempotency-Key": "hook-2"}});
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  assert.equal(await prompts("s"), 4);
  for (const timestamp of [second(1), second(1), second(2), 5, 5, second(2)])
    await world.hook("t", "UserPromptSubmit", {prompt: "x", timestamp});
  assert.equal(await prompts("t"), 3);
  await world.hook("t", "Stop", {timestamp: second(1)});
  assert.equal((await world.session("t")).status, "done", "another type is another hook");
  await world.hook("u", "UserPromptSubmit", {prompt: "x", timestamp: second(1)});
  assert.equal(await prompts("u"), 1, "and another session, too");
  const elsewhere = new Sessions(daemon, world.home, newSpace());
  await elsewhere.hook("s", "UserPromptSubmit", {prompt: "x"}, {headers});
  assert.equal((await elsewhere.session("s")).prompts.length, 1, "and another space");
  const copies = Array.from({length: 20}, () => world.hook("v", "UserPromptSubmit", {timestamp: second(3)}));
  await Promise.all(copies);
  assert.equal(await prompts("v"), 1);
});

// When it is read

// WORK-1 to WORK-5, WORK-7 to WORK-9, WORK-24; C-14.
test("hooks at 0, 100 and 200 ms give one run at 2 s", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const begin = await world.advance("0s");
  await world.start("s", transcript);
  await world.advance("100ms");
  await world.nudge("s");
  await world.advance("100ms");
  await world.nudge("s");
  const key = await world.key("s");
  assert.deepEqual([key.status, key.count, Date.parse(key.fires_at) - begin], ["waiting", 3, 2_000]);
  await world.advance("1799ms");
  assert.deepEqual([await world.runs("s"), (await world.session("s")).messages], [[], 0]);
  await world.advance("1ms");
  assert.deepEqual([await world.runs("s"), (await world.session("s")).messages], [[3], 1]);
  await world.advance("1m");
  assert.deepEqual(await world.runs("s"), [3]);
});

// WORK-10, WORK-13, WORK-22, WORK-25, WORK-B3.
test("hooks during a run give one more", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  const many = Array.from({length: 40_000}, (_, i) => said(`m${i}`, i, "x".repeat(200)));
  transcript.append(...many);
  await world.start("s", transcript);
  const advanced = world.advance("2s");
  await until("it runs", async () => (await world.key("s")).status === "running");
  transcript.append(said("more", 50_000, "x"));
  for (let i = 0; i < 5; ++i) await world.nudge("s");
  const {status, pending, count, owner} = await world.key("s");
  assert.deepEqual([status, pending, count], ["running", true, 5]);
  assert.ok(owner);
  await advanced;
  await world.advance("2s");
  assert.deepEqual(await world.runs("s"), [1, 5]);
  assert.equal((await world.key("s")).status, "idle");
  assert.deepEqual([(await world.session("s")).messages, (await world.uuids("s")).at(-1)], [40_001, "more"]);
});

test("hooks while a run waits for its turn give one more", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  await world.start("s", transcript);
  await daemon.expect(200, "POST", world.at("workers/transcripts/pause"), {});
  await world.advance("2s");
  transcript.append(said("b", 2, "x"));
  for (let i = 0; i < 5; ++i) await world.nudge("s");
  await world.advance("10s");
  assert.deepEqual(await world.runs("s"), []);
  await daemon.expect(200, "POST", world.at("workers/transcripts/unpause"), {});
  await world.advance("2s");
  assert.deepEqual(await world.runs("s"), [1, 5]);
  assert.deepEqual(await world.uuids("s"), ["a", "b"]);
});

// WORK-B4, WORK-B6, WORK-B9.
test("500 hooks at once for one session are one run, and none is lost", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const hook = (i) => world.hook("s", "UserPromptSubmit", {prompt: `p${i}`, transcript_path: transcript.path});
  await Promise.all(Array.from({length: 500}, (_, i) => hook(i)));
  assert.equal((await world.key("s")).count, 500);
  const {prompts} = await world.session("s");
  assert.equal(new Set(prompts.map((each) => each.text)).size, 500);
  await world.advance("2s");
  assert.deepEqual(await world.runs("s"), [500]);
  assert.deepEqual(await world.uuids("s"), ["a"]);
});

// WORK-13.
test("sessions do not wait for each other", async () => {
  const world = shared.apart();
  const ids = Array.from({length: 30}, (_, i) => `s${i}`);
  for (const id of ids) {
    const transcript = world.transcript(id);
    transcript.append(...Array.from({length: 20}, (_, i) => said(`${id} ${i}`, i, "x")));
    await world.hook(id, "UserPromptSubmit", {prompt: id, transcript_path: transcript.path});
  }
  await world.advance("2s");
  for (const id of ids) assert.deepEqual(await world.uuids(id), Array.from({length: 20}, (_, i) => `${id} ${i}`));
});

test("a session that is removed is gone, and may come again", async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  await world.start("s", transcript);
  await world.advance("2s");
  await daemon.expect(204, "DELETE", world.one("s"));
  for (const [method, path] of [
           ["GET", ""], ["GET", "/messages"], ["DELETE", ""], ["PUT", "/favourite"], ["DELETE", "/favourite"]])
    await daemon.refuse(404, "not_found", method, world.one("s") + path);
  assert.deepEqual(await world.sessions(), []);
  await world.advance("1s");
  await world.start("s", transcript);
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["a"]);
  await world.nudge("s");
  await daemon.expect(204, "DELETE", world.one("s"));
  await world.advance("2s");
  await daemon.refuse(404, "not_found", "GET", world.one("s"));
});
