// Clients that work with several daemons on one store while things break, and what must be true of it all afterwards:
// nothing that was acknowledged is lost, effects happen once, actors count every call once, and lists that are read and
// appended to could have been so one transaction after another.
import assert from "node:assert/strict";
import {setTimeout as sleep} from "node:timers/promises";

import {until} from "../http/daemon.mjs";

/// How long a client waits for an answer. The daemons promise one sooner.
const answerLimit = 12_000;
const space = "/v1/load";
const lists = 6;
const actors = 3;

/// How many seconds of faults; PERDURE_FAULT_SECONDS says otherwise.
export const faultSeconds = Number(process.env.PERDURE_FAULT_SECONDS ?? 25);
/// Longer than a daemon waits for a server that is silent, and longer than its sessions live.
export const longerThanPatience = 7_000;
/// Longer than that, nobody may wait around a fault.
export const unavailableLimit = 10_000;

const now = () => performance.now();

/// Numbers in [0, 1) that are the same each time (mulberry32).
function chance(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Load {
  /// `kind` is the url of a counter, as the daemons see it.
  static async start(t, daemons, kind) {
    const load = new Load();
    Object.assign(load, {t, daemons, history: [], clients: []});
    // After a failure, too: clients that go on would keep the test from ending.
    t.after(() => (load.ended = load.draining = true));
    await daemons[0].expect(
        201, "PUT", `${space}/kinds/counter`, {url: kind, timeout: "5s", retry: {max: 50, delay: "100ms"}});
    await daemons[0].expect(201, "PUT", `${space}/partitions/effects`, {types: {effect: {number: 1}}});
    await daemons[0].expect(201, "PUT", `${space}/workers/w`, {retry: {max: 1_000, delay: "100ms"}});
    for (const [i, daemon] of daemons.entries()) {
      load.clients.push(load.#beats(daemon, i));
      for (let k = 0; k < 2; ++k) {
        load.clients.push(load.#emits(i), load.#works(daemon), load.#calls(i), load.#lists(daemon, 2 * i + k));
      }
    }
    return load;
  }

  ended = false;
  /// Events are no longer brought.
  draining = false;
  /// When each daemon has acknowledged something: [[ms...], ...].
  acknowledged = new Map();
  /// What a daemon has acknowledged that it was asked while it was cut off.
  unfounded = [];
  operations = {beats: 0, emits: 0, completions: 0, calls: 0, transactions: 0, conflicts: 0, unknown: 0, refused: 0};
  /// The event of each number that was emitted.
  emitted = new Map();
  /// The replies of each actor, by the number of the call.
  replies = new Map();
  faults = [];
  /// Of daemons that have died: what they had counted.
  counted = {remade: 0, appended: 0, committed: 0};

  /// One request. Null if there was no answer.
  async #ask(daemon, method, path, body, headers = {}) {
    if (daemon.isDown) {
      await sleep(50);
      return null;
    }
    const cut = daemon.cut;
    try {
      const answer = await daemon.request(method, path, {body, headers, timeout: answerLimit});
      if (answer.status < 300)
        this.#note(daemon);
      else if (answer.status === 503 || answer.status === 429)
        ++this.operations.refused;
      if (answer.status < 300 && cut && daemon.cut === cut)
        this.unfounded.push(`${cut}: ${method} ${path} ${answer.text}`);
      return answer;
    } catch (error) {
      if (error.code === "ERR_ASSERTION") this.wrong ??= error;
      return null;
    }
  }
  #note(daemon) {
    if (!this.acknowledged.has(daemon)) this.acknowledged.set(daemon, []);
    this.acknowledged.get(daemon).push(now());
  }
  /// The same request, at one daemon after another, until one has done it.
  async #repeat(first, path, body, key, done) {
    for (let i = first;; ++i) {
      const answer =
          await this.#ask(this.daemons[i % this.daemons.length], "POST", path, body, {"Idempotency-Key": key});
      if (answer && done(answer)) return answer;
      await sleep(answer ? 50 : 10);
      if (this.wrong) throw this.wrong;
    }
  }

  /// Shows how long a daemon does nothing for anybody.
  async #beats(daemon, i) {
    for (let n = 0; !this.ended; ++n) {
      const answer = await this.#ask(daemon, "PUT", `${space}/keys/beat${i}`, n);
      if (answer?.status < 300) ++this.operations.beats;
      await sleep(50);
    }
  }

  #events = 0;
  async #emits(first) {
    while (!this.draining) {
      const n = ++this.#events;
      const answer = await this.#repeat(
          first, `${space}/events`, {worker: "w", value: n}, `event ${n}`, ({status}) => status === 201);
      this.emitted.set(n, answer.json.id);
      ++this.operations.emits;
      await sleep(20);
    }
  }
  /// What an event does is done by the transaction that completes it; it would show if it were done twice.
  async #works(daemon) {
    while (!this.ended) {
      const claimed = await this.#ask(daemon, "POST", `${space}/workers/w/claim`, {max: 5, wait: "1s", lock: "3s"});
      if (claimed?.status !== 200) await sleep(50);
      await Promise.all((claimed?.json?.items ?? []).map(async ({id, token, value}) => {
        const answer = await this.#ask(daemon, "POST", `${space}/transact`, {
          complete: [{id, token, result: value}],
          set: [{key: `done/${value}`, value: id}],
          append: [{partition: "effects", type: "effect", workspace: 1, next: ["number"], payload: value}]
        });
        if (answer?.status === 200) ++this.operations.completions;
      }));
    }
  }

  #called = 0;
  async #calls(first) {
    while (!this.draining) {
      const n = ++this.#called;
      const actor = n % actors;
      const answer = await this.#repeat(
          first, `${space}/actors/counter/c${actor}/call?timeout=5s`, {add: 1, n}, `call ${n}`,
          ({status}) => status === 200);
      if (!this.replies.has(actor)) this.replies.set(actor, []);
      this.replies.get(actor).push(answer.json.reply);
      ++this.operations.calls;
      await sleep(20);
    }
  }

  #value = 0;
  /// Reads one or two lists and appends to one of them or both, or only looks, in one transaction.
  async #lists(daemon, process) {
    const random = chance(process + 1);
    while (!this.draining) {
      await sleep(10);
      // New lists now and then, so that none becomes long.
      const era = Math.floor(this.#value / 300);
      const first = Math.floor(random() * lists), second = (first + 1 + Math.floor(random() * (lists - 1))) % lists;
      const keys = (random() < 0.6 ? [first, second] : [first]).map((each) => era * lists + each);
      const invoked = steadyTime();
      const read = [];
      for (const key of keys) {
        const answer = await this.#ask(daemon, "GET", `${space}/keys/list${key}`);
        if (answer?.status !== 200 && answer?.status !== 404) break;
        read.push({key, list: answer.status === 200 ? answer.json : [], version: answer.headers.etag?.slice(1, -1)});
      }
      if (read.length < keys.length) continue;
      const looksOnly = random() < 0.2;
      const appends = looksOnly ?
          [] :
          read.filter((_, i) => i === 0 || random() < 0.5).map(({key}) => ({key, value: ++this.#value}));
      const micro = [
        ...read.map(({key, list}) => `r ${key} ${list.join(",") || "-"}`),
        ...appends.map(({key, value}) => `a ${key} ${value}`)
      ].join(" ");
      const answer = await this.#ask(daemon, "POST", `${space}/transact`, {
        check: read.map(({key, version}) => (version ? {key: `list${key}`, version} : {key: `list${key}`})),
        set: appends.map(
            ({key, value}) => ({key: `list${key}`, value: [...read.find((each) => each.key === key).list, value]}))
      });
      // A connection that is lost, and an answer that says so, tell nothing.
      const ending = answer?.status === 200 ? "ok" : answer?.json?.outcome === "none" ? "fail" : "unknown";
      if (ending === "ok") ++this.operations.transactions;
      if (ending === "unknown") ++this.operations.unknown;
      if (answer?.status === 409) ++this.operations.conflicts;
      this.history.push(`${ending} ${process} ${invoked} ${steadyTime()} ${micro}`);
    }
  }

  /// Does these things one after another, with some calm between them, until the time is over; each once at least.
  async suffer(faults) {
    const end = now() + faultSeconds * 1_000;
    await sleep(2_000);
    for (let i = 0; i < faults.length || now() < end; ++i) {
      await faults[i % faults.length]();
      await sleep(3_000);
    }
  }
  /// Does something bad. `down` are the daemons that cannot be expected to answer meanwhile.
  async fault(name, down, what) {
    const fault = {name, down, from: now()};
    this.faults.push(fault);
    await what();
    fault.to = now();
  }
  /// Keeps daemons from the store for longer than they have patience. What they are asked meanwhile they do not
  /// acknowledge, not even what they have in memory; what they were asked before they may, however late.
  async cutOff(name, daemons, cut, mend) {
    await this.fault(name, daemons, async () => {
      cut();
      for (const daemon of daemons) daemon.cut = `${name} (${this.faults.length})`;
      this.clients.push(...daemons.map((daemon) => this.#looks(daemon)));
      await sleep(longerThanPatience);
      for (const daemon of daemons) daemon.cut = undefined;
      mend();
    });
  }
  /// Asks for what the daemon has written itself.
  async #looks(daemon) {
    while (daemon.cut) {
      await this.#ask(daemon, "GET", `${space}/keys/beat${this.daemons.indexOf(daemon)}`);
      await sleep(100);
    }
  }
  /// Kills a daemon and starts it again.
  async killDaemon(daemon, pause = 1_000) {
    await this.#count(daemon);
    daemon.isDown = true;
    await daemon.kill();
    await sleep(pause);
    // As whoever looks after daemons does: one that begins while its store cannot be reached says so, and ends.
    for (const until = now() + unavailableLimit;; await sleep(200)) {
      try {
        await daemon.restart();
        break;
      } catch (error) {
        if (now() > until || !/"code":5/.test(error.message)) throw error;
      }
    }
    daemon.isDown = false;
  }
  async #count(daemon) {
    const {text} = await daemon.get("/metrics");
    const value = (name) => Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1] ?? 0);
    this.counted.remade += value("perdure_batches_remade_total");
    this.counted.appended += value("perdure_sync_duration_seconds_count");
    this.counted.committed += value('perdure_commits_total{outcome="committed"}');
  }

  /// The longest time around a fault during which a daemon that was not part of it did nothing, and during which none
  /// did anything.
  #unavailable({from, to, down}) {
    const longest = (times) => {
      const around = [
        from - 500,
        ...times.filter((at) => at > from - 500 && at < to + 3_000),
      ];
      let gap = 0;
      for (let i = 1; i < around.length; ++i) gap = Math.max(gap, around[i] - around[i - 1]);
      // Nothing at all after some moment is a gap as well.
      return Math.max(gap, Math.min(to + 3_000, this.stopped) - around.at(-1));
    };
    const up = this.daemons.filter((each) => !down.includes(each)).map((each) => this.acknowledged.get(each) ?? []);
    return {
      worst: Math.max(0, ...up.map(longest)),
      all: longest([...this.acknowledged.values()].flat().sort((a, b) => a - b))
    };
  }

  /// Ends it: no more work is brought, what there is is done, and all of it is checked.
  async finish(title) {
    this.draining = true;
    this.stopped = now();
    const [daemon] = this.daemons;
    await until("all events are done", async () => {
      if (this.wrong) throw this.wrong;
      const answer = await this.#ask(daemon, "GET", `${space}/workers/w`);
      return this.emitted.size === this.#events && answer?.json?.counts?.total === 0;
    });
    this.ended = true;
    await Promise.all(this.clients);
    if (this.wrong) throw this.wrong;
    for (const each of this.daemons) {
      await each.expect(201, "PUT", `${space}/keys/after${this.daemons.indexOf(each)}`, 1);
      await this.#count(each);
    }
    assert.deepEqual(this.unfounded, [], "nothing is acknowledged that was asked of a daemon without a store");
    await this.#checkEvents();
    await this.#checkCalls();
    await this.#finishHistory();
    this.#report(title);
  }

  /// Daemons that a fault has hit are back soon after it.
  #checkHit(title, {name, down, to}) {
    for (const daemon of down) {
      const times = this.acknowledged.get(daemon) ?? [];
      const back = (times.find((at) => at > to) ?? Math.max(to, this.stopped)) - to;
      this.t.diagnostic(`${title}: ${name}: back after ${back.toFixed(0)} ms`);
      assert.ok(back < unavailableLimit, `${name}: ${back} ms without an acknowledgement after it was over`);
    }
  }

  async #all(path, after = "") {
    const items = [];
    for (let next = after; next !== null;) {
      const page = await this.daemons.at(-1).expect(
          200, "GET", `${space}/${path}limit=1000${next && `&after=${encodeURIComponent(next)}`}`);
      items.push(...page.items);
      next = page.next;
    }
    return items;
  }
  async #checkEvents() {
    const log = await this.#all("partitions/effects/log?");
    assert.deepEqual(log.map((each) => each.numbers[0][1]), log.map((_, i) => i + 1), "numbers have no gap");
    const effects = log.map((each) => each.payload).sort((a, b) => a - b);
    const expected = [...this.emitted.keys()].sort((a, b) => a - b);
    assert.deepEqual(effects, expected, "every event that was acknowledged had its effect once, and no other had any");
    const done =
        new Map((await this.#all("keys?prefix=done%2F&")).map(({key, value}) => [Number(key.slice(5)), value]));
    assert.deepEqual(done, new Map([...this.emitted].sort(([a], [b]) => String(a) < String(b) ? -1 : 1)));
  }
  async #checkCalls() {
    for (const [actor, replies] of this.replies) {
      assert.deepEqual([...replies].sort((a, b) => a - b), replies.map((_, i) => i + 1), `the calls of actor ${actor}`);
      assert.equal(
          await this.daemons.at(-1).expect(200, "GET", `${space}/actors/counter/c${actor}/state`), replies.length);
    }
  }
  async #finishHistory() {
    for (const {key, value} of await this.#all("keys?prefix=list&"))
      this.history.push(`final ${key.slice(4)} ${value.join(",")}`);
  }

  #report(title) {
    const seconds = (this.stopped - this.faults[0].from) / 1_000;
    const {remade, appended, committed} = this.counted;
    this.t.diagnostic(`${title}: ${seconds.toFixed(0)} s, ${JSON.stringify(this.operations)}`);
    this.t.diagnostic(
        `${title}: ${committed} commits in ${appended} batches; ${remade} were made again because another daemon was ` +
        `first, ${(100 * remade / Math.max(appended + remade, 1)).toFixed(0)} % of all that were made`);
    for (const fault of this.faults) {
      const {worst, all} = this.#unavailable(fault);
      this.#checkHit(title, fault);
      this.t.diagnostic(
          `${title}: ${fault.name}: ${(fault.to - fault.from).toFixed(0)} ms; unavailable for ` +
          `${worst.toFixed(0)} ms at the worst daemon that was not hit, ${all.toFixed(0)} ms at all of them`);
      assert.ok(worst < unavailableLimit, `${fault.name}: ${worst} ms without an acknowledgement`);
    }
    assert.ok(this.operations.transactions > 20 && this.operations.completions > 20 && this.operations.calls > 20);
  }
}

/// Nanoseconds of one steady clock.
const steadyTime = () => process.hrtime.bigint();
