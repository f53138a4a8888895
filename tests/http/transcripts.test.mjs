// /v1/{space}/transcripts: hooks, and which files are transcripts
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {chmodSync, mkdirSync, rmSync, symlinkSync} from "node:fs";
import {join} from "node:path";
import {test} from "node:test";

import {Daemon, scratch} from "./daemon.mjs";
import {said, second, Sessions, Transcript} from "./sessions.mjs";

const shared = await Sessions.start(undefined, {shared: true});
const {daemon} = shared;
process.on("exit", () => rmSync(shared.home, {recursive: true, force: true}));

// Hooks

// WORK-U1.
test("every type of hook has its status", async () => {
  const world = shared.apart();
  const steps = [
    ["SessionStart", {source: "startup"}, "started"],
    ["UserPromptSubmit", {prompt: "go"}, "active"],
    ["Stop", {}, "done"],
    ["PreToolUse", {tool_name: "Bash"}, "active"],
    ["Notification", {notification_type: "permission_prompt"}, "permission_needed"],
    ["Notification", {notification_type: "auth_success"}, "permission_needed"],
    ["PostToolUse", {tool_name: "Bash"}, "active"],
    ["Notification", {notification_type: "idle_prompt"}, "idle"],
    ["Notification", {}, "idle"],
    ["SubagentStop", {}, "idle"],
    ["PreCompact", {}, "idle"],
    ["Invented", {}, "idle"],
    ["SessionEnd", {reason: "exit"}, "ended"],
    ["SessionStart", {source: "resume"}, "started"],
  ];
  let updated = "";
  for (const [type, more, status] of steps) {
    await world.hook("s", type, more);
    const session = await world.session("s");
    assert.equal(session.status, status, type);
    assert.deepEqual((await world.sessions(`?status=${status}`)).map((each) => each.id), ["s"]);
    assert.ok(session.updated_at > updated);
    updated = session.updated_at;
    await world.advance("1s");
  }
  for (const status of ["active", "idle", "permission_needed", "done", "ended"])
    assert.deepEqual(await world.sessions(`?status=${status}`), []);
});

// WORK-U1.
test("a hook that was overtaken by a later one undoes nothing of it", async () => {
  const world = shared.apart();
  const now = await world.advance("1s");
  const sent = (type, ms, more) => world.hook(
      "s", type, more, {headers: {"Perdure-Hook-Time": new Date(now + ms).toISOString()}});
  await sent("UserPromptSubmit", -20, {prompt: "asked"});
  await sent("SessionStart", -30, {source: "startup"});
  assert.equal((await world.session("s")).status, "active");
  await sent("Stop", -5);
  await sent("PostToolUse", -10);
  const session = await world.session("s");
  assert.equal(session.status, "done");
  assert.deepEqual(session.prompts.map((each) => now - Date.parse(each.created_at)), [20, 30]);
  // By a clock that differs it is no later than now, and one that is none is logged.
  await sent("PreToolUse", -3_600_000);
  assert.equal((await world.session("s")).status, "active");
  const log = daemon.logs();
  await world.hook("s", "SessionEnd", {}, {headers: {"Perdure-Hook-Time": "yesterday"}});
  await log(/warning transcript: the time of a hook is none, and it counts as of now: .*session=s/);
  assert.equal((await world.session("s")).status, "ended");
});

// WORK-15.
test("a prompt has the time by the clock of whoever sends it, however wrong that is, as its messages have", async () => {
  const world = shared.apart();
  const now = await world.advance("1s");
  const headers = {"Perdure-Hook-Time": new Date(now - 3_600_000).toISOString()};
  await world.hook("s", "UserPromptSubmit", {prompt: "asked"}, {headers});
  const session = await world.session("s");
  assert.deepEqual(session.prompts.map((each) => now - Date.parse(each.created_at)), [3_600_000]);
  assert.equal(Date.parse(session.updated_at), now, "it is not taken for an old one");
});

// WORK-U4.
test("prompts come from starts and from what is submitted, and the first names the session", async () => {
  const world = shared.apart();
  const texts = async () => (await world.session("s")).prompts.map((each) => each.text);
  await world.hook("s", "SessionStart", {source: "startup"});
  assert.deepEqual(await texts(), [null]);
  await world.hook("s", "SessionStart", {source: "resume"});
  assert.deepEqual(await texts(), [null]);
  await world.hook("s", "SessionStart", {source: "clear"});
  assert.deepEqual(await texts(), [null, null]);
  assert.equal((await world.session("s")).name, "");
  const long = "é🎉".repeat(150);
  await world.hook("s", "UserPromptSubmit", {prompt: long});
  await world.hook("s", "UserPromptSubmit", {prompt: "another"});
  await world.hook("s", "UserPromptSubmit", {prompt: null});
  await world.hook("s", "PreToolUse", {prompt: "no prompt at all"});
  assert.deepEqual(await texts(), [null, null, long, "another", null]);
  const {name, prompts} = await world.session("s");
  assert.equal(name, "é🎉".repeat(100));
  assert.deepEqual(prompts.map((each) => each.id), [1, 2, 3, 4, 5]);
});

test("a prompt's own time is kept, if it is one", async () => {
  const world = shared.apart();
  await world.hook("s", "UserPromptSubmit", {prompt: "a", timestamp: second(7)});
  await world.hook("s", "UserPromptSubmit", {prompt: "b", timestamp: "yesterday"});
  const [a, b] = (await world.session("s")).prompts;
  assert.equal(a.created_at, second(7));
  assert.equal(Date.parse(b.created_at), await world.advance("0s"));
});

// WORK-U3, WORK-U4.
test("a session keeps its project, and nothing is erased by null", async () => {
  const world = shared.apart();
  const [one, two] = [world.transcript("one"), world.transcript("two")];
  await world.hook("s", "UserPromptSubmit", {cwd: "/code/shop/", transcript_path: one.path, prompt: "the name"});
  await world.advance("1s");
  for (const nothing of [null, "", 5, {}, [], true])
    await world.hook("s", "UserPromptSubmit", {cwd: nothing, transcript_path: nothing, prompt: nothing});
  let session = await world.session("s");
  assert.deepEqual([session.project, session.transcript_path, session.name], ["/code/shop/", one.path, "the name"]);
  await world.hook("s", "Stop", {cwd: "/elsewhere", transcript_path: two.path});
  session = await world.session("s");
  assert.deepEqual([session.project, session.transcript_path], ["/code/shop/", two.path]);
  await world.hook("r", "Stop", {});
  assert.equal((await world.session("r")).project, null);
  await world.hook("q", "Stop", {cwd: "/"});
  const {items} = await daemon.expect(200, "GET", world.at("transcripts/projects"));
  assert.deepEqual(items.map(({path, name}) => [path, name]), [["/", "/"], ["/code/shop/", "shop"]]);
  assert.ok(items[1].updated_at > items[1].created_at);
});

test("sessions and projects are listed by page, project and status", async () => {
  const world = shared.apart();
  const ids = Array.from({length: 12}, (_, i) => `s${String(i).padStart(2, "0")}`);
  for (const [i, id] of ids.entries()) await world.hook(id, i % 2 ? "Stop" : "PreToolUse", {cwd: `/code/p${i % 3}`});
  for (const [what, key, count] of [["sessions", "id", 12], ["projects", "path", 3]]) {
    const seen = [];
    for (let after = ""; after !== null;) {
      const query = `?limit=2${after && `&after=${encodeURIComponent(after)}`}`;
      const page = await daemon.expect(200, "GET", world.at(`transcripts/${what}${query}`));
      assert.ok(page.items.length <= 2);
      seen.push(...page.items.map((each) => each[key]));
      after = page.next;
    }
    assert.deepEqual(seen, seen.slice().sort());
    assert.equal(new Set(seen).size, count);
  }
  const found = await world.sessions(`?project=${encodeURIComponent("/code/p0")}&status=done`);
  assert.deepEqual(found.map((each) => each.id), ["s03", "s09"]);
  assert.deepEqual(await world.sessions("?project=/code/none"), []);
  for (const bad of ["limit=0", "limit=1001", "limit=x"])
    for (const what of ["sessions", "projects", "sessions/s00/messages"])
      await daemon.refuse(400, "invalid_argument", "GET", world.at(`transcripts/${what}?${bad}`));
  await daemon.refuse(400, "invalid_argument", "GET", `${world.one("s00")}/messages?after=nonsense`);
});

test("a status that there is not is refused", async () => {
  const world = shared.apart();
  await daemon.refuse(400, "invalid_argument", "GET", world.at("transcripts/sessions?status=lost"));
});

// WORK-U5.
test("a start takes away other sessions of the project that only started", async () => {
  const world = shared.apart();
  const start = (id, cwd) => world.hook(id, "SessionStart", {cwd});
  await start("only started", "/code/a");
  await start("did something", "/code/a");
  assert.deepEqual((await world.sessions()).map((each) => each.id), ["did something"]);
  await world.hook("did something", "UserPromptSubmit", {prompt: "x"});
  await start("elsewhere", "/code/b");
  await start("new", "/code/a");
  await start("new", "/code/a");
  assert.deepEqual((await world.sessions()).map((each) => each.id), ["did something", "elsewhere", "new"]);
  await daemon.refuse(404, "not_found", "GET", world.one("only started"));
  await daemon.refuse(404, "not_found", "GET", `${world.one("only started")}/messages`);
});

for (const source of ["clear", "compact", "resume"])
  test(`a start leaves a session that has messages, and that began again by ${source}`, async () => {
    const world = shared.apart();
    const transcript = world.transcript();
    transcript.append(said(`before ${source}`, 1, "x"));
    await world.start("s", transcript);
    await world.advance("2s");
    await world.hook("s", "SessionStart", {source, cwd: "/code/shop"});
    assert.equal((await world.session("s")).status, "started");
    await world.hook("t", "SessionStart", {cwd: "/code/shop"});
    assert.deepEqual((await world.sessions()).map((each) => each.id), ["s", "t"]);
    assert.deepEqual(await world.uuids("s"), [`before ${source}`]);
  });

// WORK-U2.
test("whatever a hook is, the session goes on, and what is wrong is logged", async () => {
  const world = shared.apart();
  const bodies = [
    "",
    " ",
    "nonsense",
    "{",
    "{\"session_id\":",
    "null",
    "5",
    "true",
    "\"text\"",
    "[]",
    "[{\"session_id\":\"s\"}]",
    "{}",
    "\u0000",
    "{\"session_id\":\"s\"} more",
    "{\"a\":1e999}",
    "\ufeff{}",
    "[".repeat(10_000),
    {hook_event_name: "Stop"},
    {session_id: null},
    {session_id: ""},
    {session_id: 5},
    {session_id: {}},
    {session_id: ["s"]},
    {session_id: "a\u0000b"},
    {session_id: "a\nb"},
    {session_id: "x".repeat(201)},
  ];
  for (const body of bodies) {
    const log = daemon.logs();
    await world.send(body);
    await log(/warning transcript: a hook was refused: .*space=t/, JSON.stringify(body).slice(0, 100));
  }
  await world.send(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]).toString("latin1"));
  assert.deepEqual(await world.sessions(), []);
  assert.deepEqual((await daemon.expect(200, "GET", world.at("transcripts/projects"))).items, []);
  assert.deepEqual((await daemon.expect(200, "GET", world.at("debouncers/transcripts/keys"))).items, []);
  await world.hook("s", 5, {timestamp: {}, source: []});
  await world.hook("x".repeat(200), "Stop", {
    cwd: "/" +
        "long/".repeat(1_000)
  });
  assert.equal((await world.sessions()).length, 2);
});

test("a session that is called . or .. is none", async () => {
  const world = shared.apart();
  for (const id of [".", ".."]) {
    const log = daemon.logs();
    await world.hook(id, "Stop", {}, {check: false});
    await log(/warning transcript: a hook was refused: /, id);
  }
});

test(
    "a hook that was cut within a character is understood", async () => {
      const world = shared.apart();
      await world.hook("s", "UserPromptSubmit", {prompt: "a smile \ud83d"});
      assert.equal((await world.sessions())[0]?.name, "a smile \ufffd");
    });

// WORK-B12.
test("a session id that looks like a path is data", async () => {
  const world = shared.apart();
  const ids = ["../../x", "/etc/passwd", "a/b", "%2e%2e", "a b?c#d&e", "ü".repeat(100), "-rf", "$(id)", "x\\..\\y"];
  for (const id of ids) {
    const transcript = world.transcript(`${ids.indexOf(id)}.jsonl`);
    transcript.append(said(`of ${ids.indexOf(id)}`, 0, "hello"));
    await world.start(id, transcript, {cwd: `/code/${id}`});
  }
  await world.advance("2s");
  for (const id of ids) {
    assert.equal((await world.session(id)).id, id);
    assert.deepEqual(await world.uuids(id), [`of ${ids.indexOf(id)}`]);
    assert.deepEqual(await world.runs(id), [1]);
  }
  assert.deepEqual((await world.sessions()).map((each) => each.id).sort(), ids.slice().sort());
});

test("a hook of 8 MiB is taken, and of one of more nothing is stored", async () => {
  const world = shared.apart();
  const hook = (id, size) => {
    const text = JSON.stringify({session_id: id, hook_event_name: "PostToolUse", tool_response: ""});
    return `${text.slice(0, -2)}${"x".repeat(size - text.length)}"}`;
  };
  await world.send(hook("s", 8 * 1024 * 1024));
  assert.equal((await world.session("s")).status, "active");
  await world.send("x".repeat(8 * 1024 * 1024));
  const raw = hook("t", 8 * 1024 * 1024 + 1);
  const over = await daemon.request("POST", world.at("transcripts/hooks"), {raw});
  assert.deepEqual([over.status, over.json], [413, {continue: true}]);
  assert.equal((await world.sessions()).length, 1);
});

// WORK-U2
test("whoever is hooked goes on also in a space that cannot be", async () => {
  const refused = await daemon.request("POST", "/v1/no%20name/transcripts/hooks", {raw: "{}"});
  assert.deepEqual([refused.status, refused.json], [400, {continue: true}]);
});

test("a prompt of a megabyte is taken", async () => {
  const world = shared.apart();
  for (const size of [400_000, 1_000_000, 1_200_000])
    await world.hook(`s${size}`, "UserPromptSubmit", {prompt: "x".repeat(size)});
  assert.equal((await world.sessions()).length, 3);
});

test("a prompt of more is taken", async () => {
  const world = shared.apart();
  for (const size of [1_400_000, 4_000_000, 8_000_000])
    await world.hook(`s${size}`, "UserPromptSubmit", {prompt: "x".repeat(size)}, {check: false});
  assert.equal((await world.sessions()).length, 3);
});

// Paths of transcripts

test("only regular files below the root are transcripts", async (t) => {
  const world = shared.apart();
  const here = join(world.home, world.space);
  const outside = scratch(t);
  const secret = new Transcript(join(outside, "secret.jsonl"));
  secret.append(said("secret", 0, "secret"));
  mkdirSync(join(here, "directory"), {recursive: true});
  execFileSync("mkfifo", [join(here, "fifo")]);
  const link = (to, name) => (symlinkSync(to, join(here, name)), join(here, name));
  const beside = `${world.home}-beside`;
  t.after(() => rmSync(beside, {recursive: true, force: true}));
  new Transcript(join(beside, "x.jsonl")).append(said("beside", 0, "beside"));
  const bad = {
    device: "/dev/zero",
    "a device by a link": link("/dev/zero", "zero"),
    pipe: join(here, "fifo"),
    directory: join(here, "directory"),
    "the root": world.home,
    loop: link("loop", "loop"),
    "a link out": link(secret.path, "out"),
    "a link to a link out": link("out", "out2"),
    "a directory that leads out": join(link(outside, "door"), "secret.jsonl"),
    outside: secret.path,
    "outside and not there": join(outside, "nothing.jsonl"),
    beside: join(beside, "x.jsonl"),
    "up and out": `${here}/../../${outside.split("/").at(-1)}/secret.jsonl`,
    relative: "transcript.jsonl",
    "relative, up": "../../etc/passwd",
    "below a file": join(world.transcript("file").path, "x"),
    "too long": `${here}/${"x/".repeat(3_000)}y`,
    "a name too long": join(here, "x".repeat(300)),
    "a zero in it": `${here}/x\u0000y`,
    home: "~/x.jsonl",
  };
  for (const [what, path] of Object.entries(bad)) {
    const log = daemon.logs();
    await world.hook(what, "UserPromptSubmit", {prompt: what, transcript_path: path});
    await log(/warning transcript: a hook was refused: /, what);
    const session = await world.session(what);
    assert.deepEqual([session.status, session.transcript_path], ["active", null], what);
    assert.equal((await world.key(what)).status, "idle", what);
  }
  await world.advance("10s");
  for (const what of Object.keys(bad)) {
    const session = await world.session(what);
    assert.deepEqual([session.messages, session.read], [0, {offset: 0, bytes: 0}], what);
    assert.deepEqual(await world.runs(what), [], what);
  }
});

test("the home directory is the root unless told, and there may be several", async (t) => {
  const home = scratch(t), other = scratch(t), third = scratch(t);
  const taken = async (args, directory) => {
    const world = new Sessions(await Daemon.start(t, {args: ["--test-clock", ...args], env: {HOME: home}}), directory);
    const transcript = world.transcript();
    transcript.append(said("a", 1, "x"));
    await world.start("s", transcript);
    await world.advance("2s");
    return (await world.session("s")).messages === 1;
  };
  const two = ["--transcript-root", other, "--transcript-root", third];
  assert.deepEqual([await taken([], home), await taken([], other)], [true, false]);
  assert.deepEqual([await taken(two, home), await taken(two, other), await taken(two, third)], [false, true, true]);
});

test("a file that may not be read is refused", {skip: process.getuid() === 0 && "root may read all"}, async () => {
  const world = shared.apart();
  const transcript = world.transcript();
  transcript.append(said("a", 0, "x"));
  chmodSync(transcript.path, 0);
  const log = daemon.logs();
  await world.start("s", transcript);
  await world.advance("2s");
  await log(/warning transcript: /);
  assert.equal((await world.session("s")).messages, 0);
});

test("a transcript that is not there yet is read once it is", async () => {
  const world = shared.apart();
  const transcript = world.transcript("later/transcript.jsonl");
  rmSync(join(world.home, world.space), {recursive: true});
  await world.start("s", transcript);
  assert.equal((await world.session("s")).transcript_path, transcript.path);
  const log = daemon.logs();
  await world.advance("2s");
  await log(/warning transcript: .*session=s/);
  assert.deepEqual(await world.runs("s"), [1]);
  assert.equal((await world.key("s")).status, "idle");
  new Transcript(transcript.path).append(said("a", 0, "x"));
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["a"]);
});

test("what was a good path when the hook came is looked at again when it is read", async (t) => {
  const world = shared.apart();
  const secret = new Transcript(join(scratch(t), "secret.jsonl"));
  secret.append(said("secret", 0, "secret"));
  for (const [id, replace] of [
           ["link", (path) => symlinkSync(secret.path, path)], ["loop", (path) => symlinkSync(path, path)],
           ["directory", (path) => mkdirSync(path)], ["pipe", (path) => execFileSync("mkfifo", [path])],
           ["gone", () => {}]]) {
    const transcript = world.transcript(`${id}.jsonl`);
    transcript.append(said(id, 0, "x"));
    await world.start(id, transcript, {cwd: `/code/${id}`});
    rmSync(transcript.path);
    replace(transcript.path);
    const log = daemon.logs();
    await world.advance("2s");
    await log(new RegExp(`warning transcript: .*session=${id}`));
    const session = await world.session(id);
    assert.deepEqual([session.messages, session.read.bytes], [0, 0], id);
  }
});
