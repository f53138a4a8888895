// Sessions over time: what the stream tells of them, how long they are kept, and what kill -9 does to their messages
import assert from "node:assert/strict";
import {rmSync} from "node:fs";
import {test} from "node:test";

import {scratch, until} from "./daemon.mjs";
import {Listener} from "./listener.mjs";
import {answered, said, Sessions} from "./sessions.mjs";

const shared = await Sessions.start(undefined, {shared: true});
const {daemon} = shared;
process.on("exit", () => rmSync(shared.home, {recursive: true, force: true}));

// WORK-U6, WORK-U12.
test("the stream tells of sessions and of new messages, and resumes", async (t) => {
  const world = shared.apart();
  const transcript = world.transcript();
  const path = world.at("stream?session=s");
  const listener = await Listener.open(t, daemon, path);
  const all = await Listener.open(t, daemon, world.at("stream"));
  transcript.append(said("a", 1, "x"), said("b", 2, "x"), "nonsense");
  await world.start("s", transcript);
  await world.hook("another", "UserPromptSubmit", {prompt: "x", cwd: "/code/blog"});
  await world.advance("2s");
  transcript.append(said("c", 3, "x"));
  await world.hook("s", "Stop");
  await world.advance("2s");
  await world.hook("s", "Notification", {notification_type: "permission_prompt"});
  await daemon.expect(204, "DELETE", world.one("s"));
  await listener.see(6);
  assert.ok(listener.changes.every((each) => each.type === "session" && each.id === "s" && each.name === "shop"));
  assert.deepEqual(listener.changes.map(({state, count, offset}) => [state, count, offset]), [
    ["started", undefined, undefined], ["updated", 2, 2], ["done", undefined, undefined], ["updated", 1, 3],
    ["permission_needed", undefined, undefined], ["removed", undefined, undefined]
  ]);
  await until("the other session, too", () => all.changes.some((each) => each.id === "another"));
  for (const type of ["debouncer", "event", "session"]) assert.ok(all.states(type).length > 0, type);
  for (const place of [0, 2, 4]) {
    const again = await Listener.open(t, daemon, path, {"Last-Event-ID": listener.changes[place].cursor});
    await again.see(5 - place);
    assert.deepEqual(
        again.changes.map((each) => each.cursor), listener.changes.slice(place + 1).map((each) => each.cursor));
    again.close();
  }
});

test("changes have the time of their happening", async (t) => {
  const world = await Sessions.start(t);
  const listener = await Listener.open(t, world.daemon, world.at("stream?session=s"));
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  const ended = await world.advance("10m");
  const removed = await world.advance("1m");
  await world.daemon.expect(204, "DELETE", world.one("s"));
  await listener.see(3);
  assert.deepEqual(
      listener.changes.slice(1).map((each) => [each.state, Date.parse(each.at)]),
      [["ended", ended], ["removed", removed]]);
});

test("the stream tells of favourites", async (t) => {
  const world = shared.apart();
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  const listener = await Listener.open(t, daemon, world.at("stream?session=s"));
  await daemon.expect(200, "PUT", `${world.one("s")}/favourite`);
  await until("something is told", () => listener.changes.length > 0, 500);
});

// WORK-U13.
test("a title is told of as well", async (t) => {
  const world = shared.apart();
  const transcript = world.transcript();
  await world.start("s", transcript);
  await world.advance("2s");
  const listener = await Listener.open(t, daemon, world.at("stream?session=s"));
  transcript.append({type: "custom-title", customTitle: "Its title"});
  await world.nudge("s");
  await world.advance("2s");
  await listener.see(2);
  assert.equal((await world.session("s")).name, "Its title");
});

// WORK-U14.
test("a session of which nothing is heard has ended, and one that said nothing goes", async (t) => {
  const world = await Sessions.start(t);
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  await world.hook("empty", "SessionStart", {});
  await world.advance("9m");
  await world.nudge("s");
  await world.advance("59s");
  assert.equal((await world.sessions()).length, 2);
  await world.advance("1s");
  assert.deepEqual((await world.sessions()).map((each) => [each.id, each.status]), [["s", "active"]]);
  const listener = await Listener.open(t, world.daemon, world.at("stream?session=s"));
  await world.advance("8m");
  assert.equal((await world.session("s")).status, "active");
  await world.advance("1m");
  assert.equal((await world.session("s")).status, "ended");
  await listener.see(1);
  assert.equal(listener.changes[0].state, "ended");
  await world.nudge("s");
  assert.equal((await world.session("s")).status, "active", "it goes on if something is heard again");
});

test("a session that had ended and went on ends again", async (t) => {
  const world = await Sessions.start(t);
  await world.hook("s", "UserPromptSubmit", {prompt: "x"});
  await world.advance("10m");
  assert.equal((await world.session("s")).status, "ended");
  await world.nudge("s");
  await world.advance("10m");
  assert.equal((await world.session("s")).status, "ended");
});

// WORK-U14.
test("messages go after 3 days, sessions after 7, and favourites stay", async (t) => {
  const world = await Sessions.start(t);
  const now = await world.advance("0s");
  const at = (days) => new Date(now + days * 86_400_000).toISOString();
  const transcripts = {};
  for (const id of ["s", "favourite"]) {
    transcripts[id] = world.transcript(id);
    transcripts[id].append(said(`${id} 1`, at(0), "x"), answered(`${id} 2`, at(0), "y"));
    await world.start(id, transcripts[id], {cwd: `/code/${id}`, timestamp: at(0)});
  }
  await world.advance("2s");
  const set = await world.daemon.expect(200, "PUT", `${world.one("favourite")}/favourite`);
  assert.equal(set.favourite, true);
  assert.equal((await world.session("favourite")).favourite, true);
  await world.advance("2d");
  for (const id of ["s", "favourite"]) {
    transcripts[id].append(said(`${id} 3`, at(2), "z"));
    await world.hook(id, "PostToolUse", {});
  }
  await world.advance("2s");
  assert.equal((await world.messages("s")).length, 3);
  await world.advance("1d");
  assert.deepEqual(await world.uuids("s"), ["s 3"]);
  assert.equal((await world.messages("favourite")).length, 3);
  // What is gone does not come back because its file is still there.
  await world.read("s");
  assert.deepEqual(await world.uuids("s"), ["s 3"]);
  await world.advance("2d");
  assert.deepEqual(await world.uuids("s"), []);
  assert.equal((await world.session("s")).status, "ended");
  await world.advance("4d");
  assert.equal((await world.sessions()).length, 2, "seven days after it was heard of last");
  await world.advance("1d");
  assert.deepEqual((await world.sessions()).map((each) => each.id), ["favourite"]);
  await world.advance("60d");
  assert.deepEqual(await world.uuids("favourite"), ["favourite 1", "favourite 2", "favourite 3"]);
  await world.daemon.expect(204, "DELETE", `${world.one("favourite")}/favourite`);
  await world.advance("1s");
  assert.deepEqual(await world.sessions(), []);
});

test("an old transcript that is heard of now is kept as a new one is", async (t) => {
  const world = await Sessions.start(t);
  const transcript = world.transcript();
  transcript.append(said("old", "2020-01-01T00:00:00Z", "x"));
  await world.start("s", transcript);
  await world.advance("2d");
  assert.deepEqual(await world.uuids("s"), ["old"]);
  await world.advance("1d");
  assert.deepEqual(await world.uuids("s"), []);
});

// WORK-5, WORK-B7.
test("--debounce-seconds says how long a burst is waited for, and refuses what is no time", async (t) => {
  const world = await Sessions.start(t, {args: ["--test-clock", "--debounce-seconds", "5"]});
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  await world.start("s", transcript);
  await world.advance("4999ms");
  assert.equal((await world.session("s")).messages, 0);
  await world.advance("1ms");
  assert.equal((await world.session("s")).messages, 1);
  for (const bad of ["-1", "x", "nan", "86401"])
    await assert.rejects(Sessions.start(t, {args: ["--debounce-seconds", bad]}), /the daemon ended/, bad);
});

test("with real time, hooks at 0, 100 and 200 ms give one run after 2 s", async (t) => {
  const world = await Sessions.start(t, {args: []});
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  const begin = Date.now();
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  await world.start("s", transcript);
  for (let i = 0; i < 2; ++i) await pause(100), await world.nudge("s");
  await until("it is read", async () => (await world.session("s")).messages === 1);
  const took = Date.now() - begin;
  assert.ok(took >= 1_990 && took < 5_000, `${took} ms`);
  await until("the run has ended", async () => (await world.runs("s")).length > 0);
  assert.deepEqual(await world.runs("s"), [3]);
});

test("sessions, messages and the place in the transcript outlive the daemon", async (t) => {
  const store = `lmdb:${scratch(t)}`;
  const world = await Sessions.start(t, {store, args: ["--debounce-seconds", "0"]});
  const transcript = world.transcript();
  transcript.append(said("a", 1, "x"));
  await world.start("s", transcript);
  await until("it is read", async () => (await world.session("s")).messages === 1);
  const before = [await world.session("s"), await world.messages("s")];
  await world.daemon.stop();
  await world.daemon.restart();
  assert.deepEqual([await world.session("s"), await world.messages("s")], before);
  const added = transcript.append(said("b", 2, "x"));
  await world.nudge("s");
  await until("it is read on", async () => (await world.session("s")).messages === 2);
  const more = (await world.session("s")).read.bytes - before[0].read.bytes;
  assert.ok(more <= added + 1, `${more} bytes for ${added}`);
});

test("a session that is removed and comes again at once has all its messages", async (t) => {
  const world = await Sessions.start(t, {args: ["--debounce-seconds", "0"]});
  const transcript = world.transcript();
  const lines = Array.from({length: 20_000}, (_, i) => said(`m${i}`, i, "x"));
  transcript.append(...lines);
  const isRead = async () => (await world.session("s")).read.offset === transcript.size;
  await world.start("s", transcript);
  await until("it is read", isRead);
  // What is removed last is read first.
  transcript.rewrite(...lines.reverse());
  await world.daemon.expect(204, "DELETE", world.one("s"));
  await world.start("s", transcript);
  await until("it is read again", isRead);
  assert.equal((await world.session("s")).messages, 20_000);
});

// WORK-17, WORK-27, WORK-B1, WORK-B5.
test("a hundred times kill -9 while transcripts grow: every message once, in order", {timeout: 300_000}, async (t) => {
  const world = await Sessions.start(t, {store: `lmdb:${scratch(t)}`, args: ["--debounce-seconds", "0"]});
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  // What is lost again and again waits longer and longer, so there are several, each killed a few times.
  const sessions = Array.from({length: 34}, (_, n) => ({id: `s${n}`, count: 0, transcript: world.transcript(`s${n}`)}));
  // Of these nothing is heard after a hook that was acknowledged, with the daemon killed in the middle of its run.
  const leftAlone = ({id}) => /[13579]$/.test(id);
  const next = (session) => JSON.stringify(said(`${session.id} ${session.count}`, session.count++, "x".repeat(80)));
  for (let round = 0; round < 100; ++round) {
    const session = sessions[Math.floor(round / 3)];
    const {id, transcript} = session;
    transcript.append(...Array.from({length: 600}, () => next(session)));
    const half = next(session);
    const isLast = (round % 3 === 2 || round === 99) && leftAlone(session);
    transcript.write(isLast ? `${half}\n` : half.slice(0, 40));
    const hook = world.hook(id, "UserPromptSubmit", {prompt: `${round}`, transcript_path: transcript.path});
    if (round % 4 === 0 && !isLast) {
      hook.catch(() => {});
      await pause(Math.random() * 10);
    } else {
      await hook;
      for (let i = 0; i < 20 && (await world.key(id)).status === "waiting"; ++i) await pause(1);
      await pause(Math.random() * 20);
    }
    if (!isLast) transcript.write(`${half.slice(40)}\n`);
    await world.daemon.kill();
    await world.daemon.restart();
  }
  for (const session of sessions)
    if (!leftAlone(session)) await world.hook(session.id, "UserPromptSubmit", {prompt: "the last"});
  await world.daemon.restart();
  // Nobody says anything any more: the runs that were asked for come by themselves.
  for (const {id, count, transcript} of sessions) {
    await until(`all of ${id} is read`, async () => (await world.session(id)).read.offset === transcript.size);
    assert.deepEqual(await world.uuids(id), Array.from({length: count}, (_, i) => `${id} ${i}`));
    assert.equal((await world.session(id)).messages, count);
  }
  const worker = await world.daemon.expect(200, "GET", world.at("workers/transcripts"));
  assert.equal(worker.counts.dead, 0);
  assert.ok(worker.lost >= 10, `${worker.lost} times it died in the middle of a run`);
});

// WORK-27, WORK-B5.
test("one long run that is killed a few times comes to its end by itself", {timeout: 120_000}, async (t) => {
  const world = await Sessions.start(t, {store: `lmdb:${scratch(t)}`, args: ["--debounce-seconds", "0"]});
  const transcript = world.transcript();
  const uuids = Array.from({length: 60_000}, (_, i) => `m${i}`);
  transcript.append(...uuids.map((uuid, i) => said(uuid, i, "x".repeat(100))));
  await world.start("s", transcript);
  const seen = new Set();
  for (let round = 0; round < 4; ++round) {
    // A claim that nobody has taken over yet is still that of the daemon before.
    const isNew = ({status, token}) => status === "running" && !seen.has(token) && seen.add(token);
    await until("it runs", async () => isNew(await world.key("s")));
    await world.daemon.restart();
  }
  await until("all is read", async () => (await world.session("s")).read.offset === transcript.size);
  assert.deepEqual(await world.uuids("s"), uuids);
});
