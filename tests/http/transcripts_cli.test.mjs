// perdure hook, perdure sessions and perdure messages
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync} from "node:fs";
import http from "node:http";
import net from "node:net";
import {dirname, join} from "node:path";
import {test} from "node:test";

import {Daemon, patience, scratch, until, within} from "./daemon.mjs";
import {answered, results, said, second, Sessions, Transcript} from "./sessions.mjs";

const binary = process.env.PERDURE_BINARY;
const goOn = `{"continue":true}\n`;

/// A process of the command line: what it has printed so far, and how it ended.
class Command {
  out = "";
  err = "";
  constructor(t, home, args, input) {
    const env = {...process.env, HOME: home, NO_COLOR: "1"};
    for (const name of Object.keys(env))
      if (/^(PERDURE_|DEBOUNCE_)/.test(name)) delete env[name];
    const child = this.child = spawn(binary, args, {cwd: home, env, stdio: "pipe"});
    t.after(() => child.kill("SIGKILL"));
    child.stdout.on("data", (text) => (this.out += text));
    child.stderr.on("data", (text) => (this.err += text));
    child.stdin.on("error", () => {});
    if (input !== null) child.stdin.end(input ?? "");
    this.ended = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve(Object.assign(this, {code})));
    });
  }
}
const run = (t, home, args, input) => within(patience, args.join(" "), new Command(t, home, args, input).ended);

/// The same, of a world: its daemon and its space.
const ask = (t, world, ...args) => run(t, world.home, [...args, "--url", world.daemon.url, "--space", world.space]);

async function withMessages(t) {
  const world = await Sessions.start(t);
  const transcript = world.transcript();
  transcript.append(
      said("u1", 1, "Hello"),
      answered(
          "a1", 2,
          [
            {type: "thinking", thinking: "hm"}, {type: "text", text: "Hi\nthere \u001b[31mred"},
            {type: "tool_use", id: "t1", name: "Bash", input: {command: "ls"}}
          ]),
      results("r1", 3, {tool_use_id: "t1", content: "a.txt"}));
  await world.start("s", transcript);
  await world.hook("s", "UserPromptSubmit", {prompt: "The first prompt"});
  await world.hook("t", "SessionEnd", {cwd: "/code/blog"});
  await world.advance("2s");
  return {world, transcript};
}

test("perdure sessions lists them", async (t) => {
  const {world} = await withMessages(t);
  const table = await ask(t, world, "sessions");
  assert.equal(table.code, 0, table.err);
  assert.match(table.out, /^SESSION +STATUS +UPDATED +PROJECT +NAME\n/);
  assert.match(table.out, /^s +active .* \/code\/shop +The first prompt$/m);
  assert.match(table.out, /^t +ended .* \/code\/blog/m);
  const lines = async (...args) => (await ask(t, world, "sessions", "--json", ...args))
                                       .out.split("\n")
                                       .filter(Boolean)
                                       .map((line) => JSON.parse(line));
  assert.deepEqual(await lines(), await world.sessions());
  assert.deepEqual((await lines("--status", "ended")).map((each) => each.id), ["t"]);
  assert.deepEqual((await lines("--project", "/code/shop")).map((each) => each.id), ["s"]);
  assert.equal((await lines("--limit", "1")).length, 1);
});

test("perdure messages shows what was said, and obeys nothing of it", async (t) => {
  const {world} = await withMessages(t);
  const shown = await ask(t, world, "messages", "s");
  assert.equal(shown.code, 0, shown.err);
  for (const part
           of [`user  ${second(1)}`, "  Hello", `assistant  ${second(2)}`, "  hm", "  Hi", "> Bash", "ls", "a.txt"])
    assert.ok(shown.out.includes(part), `${part} in ${shown.out}`);
  assert.ok(!shown.out.includes("\u001b"));
  const {out} = await ask(t, world, "messages", "s", "--json");
  assert.deepEqual(out.split("\n").filter(Boolean).map((line) => JSON.parse(line)), await world.messages("s"));
  assert.deepEqual((await ask(t, world, "messages", "t")).out, "");
  const none = await ask(t, world, "messages", "none");
  assert.deepEqual([none.code, none.out], [3, ""]);
  assert.match(none.err, /there is no session 'none'/);
  assert.equal((await ask(t, world, "messages")).code, 2);
  assert.equal((await run(t, world.home, ["messages", "s", "--url", "http://127.0.0.1:1"])).code, 5);
});

test("perdure messages pages through many", async (t) => {
  const world = await Sessions.start(t);
  const transcript = world.transcript();
  const uuids = Array.from({length: 2_345}, (_, i) => `m${i}`);
  transcript.append(...uuids.map((uuid, i) => said(uuid, i, "x")));
  await world.start("s", transcript);
  await world.advance("2s");
  const {out} = await ask(t, world, "messages", "s", "--json");
  assert.deepEqual(out.split("\n").filter(Boolean).map((line) => JSON.parse(line).uuid), uuids);
});

test("perdure messages --follow goes on with what comes", async (t) => {
  const {world, transcript} = await withMessages(t);
  const args = ["messages", "s", "--follow", "--json", "--url", world.daemon.url, "--space", world.space];
  const following = new Command(t, world.home, args);
  const seen = () => following.out.split("\n").filter(Boolean).map((line) => JSON.parse(line).uuid);
  await until("what was there before", () => seen().length === 2);
  for (let i = 0; i < 3; ++i) {
    transcript.append(said(`new ${i}`, 10 + i, "more"));
    await world.read("s");
    await until("what is new", () => seen().length === 3 + i);
  }
  await world.hook("t", "Stop");
  await world.hook("s", "Stop");
  transcript.append(said("last", 20, "more"));
  await world.read("s");
  await until("the last", () => seen().includes("last"));
  assert.deepEqual(seen(), ["u1", "a1", "new 0", "new 1", "new 2", "last"]);
  following.child.kill("SIGINT");
  await within(patience, "the end", following.ended);
});

test(
    "perdure messages --follow shows a message whose time is before the last",
    async (t) => {
      const {world, transcript} = await withMessages(t);
      const args = ["messages", "s", "--follow", "--json", "--url", world.daemon.url, "--space", world.space];
      const following = new Command(t, world.home, args);
      const seen = () => following.out.split("\n").filter(Boolean).map((line) => JSON.parse(line).uuid);
      await until("what was there before", () => seen().length === 2);
      transcript.append(said("early", 1.5, "x"), said("late", 10, "x"));
      await world.read("s");
      await until("what is new", () => seen().includes("late"));
      assert.deepEqual(seen().slice(2).sort(), ["early", "late"]);
    });

// WORK-U13.
test("perdure messages --follow shows what a tool answers later", async (t) => {
  const {world, transcript} = await withMessages(t);
  const args = ["messages", "s", "--follow", "--json", "--url", world.daemon.url, "--space", world.space];
  const following = new Command(t, world.home, args);
  const seen = () => following.out.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  await until("what was there before", () => seen().length === 2);
  transcript.append(answered("call", 10, [{type: "tool_use", id: "t2", name: "Bash", input: {}}]));
  await world.read("s");
  await until("the call", () => seen().length === 3);
  transcript.append(results("answer", 11, {tool_use_id: "t2", content: "late"}));
  await world.read("s");
  await until("the answer", () => seen().length === 4);
  assert.deepEqual(seen().slice(2).map(({uuid, tools}) => [uuid, tools[0].output]), [["call", null], ["call", "late"]]);
});

test("perdure messages --follow asks for what is new only, also after something was replaced", async (t) => {
  const world = await Sessions.start(t);
  const transcript = world.transcript();
  const todo = (uuid, at) => answered(uuid, at, [{type: "tool_use", id: uuid, name: "TodoWrite", input: {}}]);
  transcript.append(said("a", 1, "x"), todo("t1", 2), todo("t2", 3));
  await world.start("s", transcript);
  await world.advance("2s");
  // How often all of it was asked for, and answered.
  let asked = 0, ended = 0;
  const proxy = http.createServer((request, response) => {
    const isWhole = /messages\?limit=1000$/.test(request.url);
    if (isWhole) ++asked;
    const url = new URL(request.url, world.daemon.url);
    const passed = http.request(url, {method: request.method, headers: request.headers}, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
      if (isWhole) response.on("finish", () => ++ended);
    });
    passed.on("error", () => response.destroy());
    request.pipe(passed);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  t.after(() => (proxy.close(), proxy.closeAllConnections()));
  const {port} = proxy.address();
  const url = `http://127.0.0.1:${port}`;
  const args = ["messages", "s", "--follow", "--json", "--url", url, "--space", world.space];
  const following = new Command(t, world.home, args);
  const seen = () => following.out.split("\n").filter(Boolean).map((line) => JSON.parse(line).uuid);
  await until("what was there before", () => seen().length === 2);
  for (let i = 0; i < 5; ++i) {
    transcript.append(said(`new ${i}`, 10 + i, "more"));
    await world.read("s");
    await until("what is new", () => seen().length === 3 + i);
    // What comes while it looks for the one that was replaced makes it look once more.
    if (i === 0) await until("it has looked for what was replaced", () => ended === 2);
  }
  assert.equal(asked, 2, "the whole history");
});

// perdure hook

test("perdure hook hands one event to the daemon", async (t) => {
  const world = await Sessions.start(t);
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const event = {
    session_id: "s",
    hook_event_name: "UserPromptSubmit",
    prompt: "wörld 🎉",
    cwd: "/code/shop",
    transcript_path: transcript.path
  };
  const args = ["hook", "--url", world.daemon.url, "--space", world.space];
  const hook = await run(t, world.home, args, JSON.stringify(event));
  assert.deepEqual([hook.code, hook.out, hook.err], [0, goOn, ""]);
  const session = await until("it is there", async () => (await world.sessions())[0]);
  assert.deepEqual([session.id, session.name, session.project], ["s", "wörld 🎉", "/code/shop"]);
  await world.advance("2s");
  assert.deepEqual(await world.uuids("s"), ["a"]);
});

// WORK-U2.
test("perdure hook answers the same whatever it is given", async (t) => {
  const world = await Sessions.start(t);
  const args = ["hook", "--url", world.daemon.url, "--space", world.space];
  for (const input
           of ["", "nonsense", "{}", "[]", "\u0000", Buffer.from([0xff, 0xfe]), "{\"session_id\":\"../../x\"}",
               "x".repeat(9 << 20)]) {
    const hook = await run(t, world.home, args, input);
    assert.deepEqual([hook.code, hook.out, hook.err], [0, goOn, ""]);
  }
  await until("the one that is good", async () => (await world.sessions()).length === 1);
  for (const url of ["http://127.0.0.1:1", "unix:///nowhere/perdure.sock", "nonsense"]) {
    const hook = await run(t, world.home, ["hook", "--url", url], "{\"session_id\":\"s\"}");
    assert.deepEqual([hook.code, hook.out, hook.err], [0, goOn, ""], url);
  }
  const wrong = await run(t, world.home, ["hook", "--wrong"], "{}");
  assert.deepEqual([wrong.code, wrong.out], [0, goOn], "exit code 2 would stop the session");
  assert.match(wrong.err, /--wrong/);
});

/// A store that no daemon serves yet, and hooks for it.
function spooling(t) {
  const home = scratch(t), directory = join(home, "data");
  mkdirSync(directory);
  const args = ["hook", "--url", `unix://${join(directory, "perdure.sock")}`];
  const spool = join(directory, "hooks.spool");
  const send = (event) => run(t, home, args, typeof event === "string" ? event : JSON.stringify(event));
  const prompt = (session_id, text) => send({session_id, hook_event_name: "UserPromptSubmit", prompt: text});
  const lines = () => existsSync(spool) ? readFileSync(spool, "utf8").split("\n").filter(Boolean).length : 0;
  const serve = async (...more) => {
    const options = {store: `lmdb:${directory}`, args: ["--transcript-root", home, ...more], env: {HOME: home}};
    return new Sessions(await Daemon.start(t, options), home, "default");
  };
  const left = () => readdirSync(directory).filter((name) => name.startsWith("hooks.spool"));
  /// A hook of a session, put into a file of the directory.
  const append = (name, session_id) => writeFileSync(
      join(directory, name),
      `${JSON.stringify({
        at: new Date().toISOString(),
        hook: JSON.stringify({session_id, hook_event_name: "UserPromptSubmit", prompt: "x"}),
        id: `of ${session_id}`,
        space: "default"
      })}\n`);
  return {home, directory, send, prompt, lines, serve, left, append};
}

test("without a daemon hooks wait in the spool, and are taken in order, once", async (t) => {
  const spool = spooling(t);
  for (let i = 0; i < 20; ++i) {
    const hook = await spool.prompt("s", `p${i}`);
    assert.deepEqual([hook.code, hook.out, hook.err], [0, goOn, ""]);
    // Now and then it is not the process that was called which does it.
    await until("it is in the spool", () => spool.lines() === i + 1);
  }
  await spool.send("nonsense");
  await until("all are in the spool", () => spool.lines() === 21);
  const world = await spool.serve("--test-clock");
  const texts = async () => (await world.session("s")).prompts.map((each) => each.text);
  const wanted = Array.from({length: 20}, (_, i) => `p${i}`);
  await until("all are taken", () => spool.left().length === 0);
  assert.deepEqual(await texts(), wanted);
  assert.equal((await world.key("s")).count, 20);
  await world.daemon.restart();
  assert.deepEqual(await texts(), wanted);
  await spool.prompt("s", "to the daemon");
  await until("the daemon has it", async () => (await texts()).length === 21);
  assert.deepEqual(spool.left(), []);
});

test("a daemon that dies while it takes the spool takes each hook once all the same, in order", async (t) => {
  const spool = spooling(t);
  const wanted = Array.from({length: 900}, (_, i) => `p${i}`);
  const begin = Date.now() - 1_000_000;
  const line = (text, i) => JSON.stringify({
    at: new Date(begin + i).toISOString(),
    hook: JSON.stringify({session_id: "s", hook_event_name: "UserPromptSubmit", prompt: text}),
    id: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
    space: "default"
  });
  writeFileSync(join(spool.directory, "hooks.spool"), wanted.map((text, i) => `${line(text, i)}\n`).join(""));
  const args = ["serve", "--store", `lmdb:${spool.directory}`, "--listen", "127.0.0.1:0"];
  let died = 0;
  for (let round = 0; round < 8 && spool.left().length > 0; ++round) {
    const daemon = new Command(t, spool.home, args);
    await until("it takes them", () => spool.left().join() !== "hooks.spool");
    await new Promise((resolve) => setTimeout(resolve, round));
    daemon.child.kill("SIGKILL");
    await daemon.ended;
    died += spool.left().length > 0;
  }
  assert.ok(died > 0, "it died in between");
  const world = await spool.serve("--test-clock");
  await until("all are taken", () => spool.left().length === 0);
  assert.deepEqual((await world.session("s")).prompts.map((each) => each.text), wanted);
});

// WORK-B11.
test("hooks that were spooled have the times at which they came", async (t) => {
  const spool = spooling(t);
  const hour = 3_600_000, begin = Date.now() - hour;
  const transcript = new Transcript(join(spool.home, "transcript.jsonl"));
  const asked = ["first", "second"];
  const lines = asked.map((prompt, i) => ({
    at: new Date(begin + i * 60_000).toISOString(),
    hook: JSON.stringify(
        {session_id: "s", hook_event_name: "UserPromptSubmit", prompt, transcript_path: transcript.path}),
    id: `00000000-0000-4000-8000-00000000000${i}`,
    space: "default"
  }));
  for (const i of [0, 1]) {
    const at = (ms) => new Date(begin + i * 60_000 + ms).toISOString();
    transcript.append(said(`u${i}`, at(-10), asked[i]), answered(`a${i}`, at(5_000), "yes"));
  }
  writeFileSync(join(spool.directory, "hooks.spool"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const world = await spool.serve("--debounce-seconds", "0");
  await until("it is read", async () => (await world.daemon.get(world.one("s"))).json.messages === 4);
  const {prompts, created_at, updated_at} = await world.session("s");
  assert.deepEqual(prompts.map((each) => each.created_at), lines.map((line) => line.at));
  assert.deepEqual([created_at, updated_at], lines.map((line) => line.at));
  assert.deepEqual((await world.messages("s")).map((each) => [each.uuid, each.prompt_id]), [
    ["u0", 1], ["a0", 1], ["u1", 2], ["a1", 2]
  ]);
});

test("a hook that comes into the spool beside a daemon is taken, and nobody has to call", async (t) => {
  const spool = spooling(t);
  const world = await spool.serve();
  const {append} = spool;
  append("hooks.spool", "last");
  await until("it is taken", async () => (await world.sessions()).length === 1);
  append("hooks.spool.taking.3", "left");
  await until("what was left, too", async () => (await world.sessions()).length === 2);
  await until("nothing is left", () => spool.left().length === 0);
});

// WORK-25.
test("a hook that was stopped while it had the spool keeps no daemon from ending", async (t) => {
  const spool = spooling(t);
  spool.append("hooks.spool", "s");
  const holder = spawn("flock", ["-F", join(spool.directory, "hooks.spool"), "sh", "-c", "echo has it; exec sleep 60"]);
  t.after(() => holder.kill("SIGKILL"));
  await within(patience, "the lock", new Promise((resolve) => holder.stdout.once("data", resolve)));
  const world = await spool.serve();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.deepEqual(await world.daemon.stop(), {code: 0, signal: null});
  assert.deepEqual(spool.left(), ["hooks.spool"]);
});

// WORK-25.
test("hooks for a daemon with a socket elsewhere wait beside that, and it takes them", async (t) => {
  const home = scratch(t), socket = join(scratch(t), "work.sock");
  const event = JSON.stringify({session_id: "s", hook_event_name: "UserPromptSubmit", prompt: "x"});
  await run(t, home, ["hook", "--url", `unix://${socket}`], event);
  await until("it is in the spool", () => existsSync(`${socket}.spool`));
  const daemon = await Daemon.start(t, {store: `lmdb:${join(home, "data")}`, socket, env: {HOME: home}});
  await until("it is taken", async () => (await new Sessions(daemon, home, "default").sessions()).length === 1);
  await until("nothing is left", () => readdirSync(dirname(socket)).join() === "work.sock");
});

// WORK-25.
test("what waits at home for one daemon is not taken by another", async (t) => {
  const one = spooling(t);
  const port = await new Promise((resolve) => {
    const server = net.createServer().listen(0, "127.0.0.1", () => {
      const {port} = server.address();
      server.close(() => resolve(port));
    });
  });
  const waiting = () => readdirSync(one.home).filter((name) => name.startsWith(".perdure-hooks")).length;
  const event = JSON.stringify({session_id: "two", hook_event_name: "UserPromptSubmit", prompt: "x"});
  await run(t, one.home, ["hook", "--url", `http://localhost:${port}`], event);
  await until("it is in the spool", () => waiting() === 1);
  const first = await one.serve();
  // By the second that it takes, it has looked for all that is its own.
  for (const id of ["a", "b"]) {
    one.append("hooks.spool", id);
    await until(`${id} is taken`, async () => (await first.sessions()).some((session) => session.id === id));
  }
  assert.equal(waiting(), 1);
  // The other is started with its port.
  const args = ["serve", "--store", `lmdb:${join(one.home, "other")}`, "--listen", `127.0.0.1:${port}`];
  new Command(t, one.home, args);
  await until("the other has taken it", () => waiting() === 0);
  const {out} = await run(t, one.home, ["sessions", "--json", "--url", `http://127.0.0.1:${port}`]);
  assert.deepEqual(out.split("\n").filter(Boolean).map((line) => JSON.parse(line).id), ["two"]);
  assert.deepEqual((await first.sessions()).map((session) => session.id).sort(), ["a", "b"]);
});

test("a daemon that keeps its store in memory takes no spool unless it is told to", async (t) => {
  const spool = spooling(t);
  spool.append("hooks.spool", "s");
  const start = (...args) => Daemon.start(t, {args, env: {HOME: spool.home}});
  const path = join(spool.directory, "hooks.spool");
  await start("--socket", join(spool.directory, "perdure.sock"));
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  assert.ok(existsSync(path));
  await start("--hook-spool", path);
  await until("it is taken", () => !existsSync(path));
});

// WORK-B4, WORK-B9.
test("500 hook processes at once for one session are one run, and none is lost", {timeout: 180_000}, async (t) => {
  const world = await Sessions.start(t, {store: `lmdb:${scratch(t)}`});
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const spool = join(world.home, "hooks.spool");
  const args = ["hook", "--url", world.daemon.url, "--space", world.space, "--spool", spool];
  const event = (i) => JSON.stringify(
      {session_id: "s", hook_event_name: "UserPromptSubmit", prompt: `p${i}`, transcript_path: transcript.path});
  const hooks =
      await Promise.all(Array.from({length: 500}, (_, i) => new Command(t, world.home, args, event(i)).ended));
  assert.deepEqual(hooks.filter((each) => each.code !== 0 || each.out !== goOn || each.err !== ""), []);
  const spooled = () => existsSync(spool) ? readFileSync(spool, "utf8").split("\n").filter(Boolean).length : 0;
  const count = async () => (await world.daemon.get(world.one("s"))).json.prompts?.length ?? 0;
  await until("all came somewhere", async () => (await count()) + spooled() === 500);
  assert.equal(spooled(), 0, "a daemon that listens takes all of them");
  assert.equal((await world.key("s")).count, 500);
  await world.advance("2s");
  assert.deepEqual(await world.runs("s"), [500]);
  assert.deepEqual(await world.uuids("s"), ["a"]);
});

test("500 hook processes at once without a daemon lose nothing", {timeout: 180_000}, async (t) => {
  const spool = spooling(t);
  await Promise.all(Array.from({length: 500}, (_, i) => spool.prompt("s", `p${i}`)));
  await until("all are in the spool", () => spool.lines() === 500);
  const world = await spool.serve("--test-clock");
  await until("all are taken", () => spool.left().length === 0);
  assert.equal(new Set((await world.session("s")).prompts.map((each) => each.text)).size, 500);
  assert.equal((await world.key("s")).count, 500);
  await world.advance("2s");
  assert.deepEqual(await world.runs("s"), [500]);
});

for (const [what, event] of [
         [
           "too large a prompt", {session_id: "bad", hook_event_name: "UserPromptSubmit", prompt: "x".repeat(2_000_000)}
         ],
         ["a session called ..", {session_id: "..", hook_event_name: "Stop"}]])
  test(
      `${what} in the spool does not hold up what is behind it`, async (t) => {
        const spool = spooling(t);
        await spool.prompt("before", "x");
        await until("it is in the spool", () => spool.lines() === 1);
        await spool.send(event);
        await until("it is in the spool", () => spool.lines() === 2);
        await spool.prompt("behind", "x");
        await until("it is in the spool", () => spool.lines() === 3);
        const world = await spool.serve("--test-clock");
        const ids = async () => (await world.sessions()).map((each) => each.id);
        await until("what is behind it", async () => (await ids()).includes("behind"), 2_000);
        assert.ok((await ids()).includes("before"));
      });
