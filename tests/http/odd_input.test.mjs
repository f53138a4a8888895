// Whatever is sent to whatever route: an answer of the document, never a failure of the daemon's own, and it lives on
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, within} from "./daemon.mjs";
import {document} from "./schema.mjs";

const daemon = await Daemon.shared();
await daemon.expect(201, "PUT", "/v1/s/debouncers/n", {quiet: "1h"});
await daemon.expect(201, "PUT", "/v1/s/partitions/p", {types: {t: {q: 1}}});
await daemon.expect(201, "PUT", "/v1/s/schedules/n", {every: "Daily", worker: "w"});

/// Reproducible: the same numbers in every run.
function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const uuid = "00000000-0000-7000-8000-000000000000";
const params = {
  space: ["s"],
  id: [uuid, "x", "ü", "a%20b"],
  worker: ["w"],
  name: ["n", "none"],
  kind: ["k"],
  partition: ["p", "none"],
  key: ["x", "%F0%9F%98%80"]
};
const operations =
    Object.entries(document.paths)
        .flatMap(
            ([path, item]) => Object.keys(item)
                                  .filter((name) => name !== "parameters")
                                  .map((method) => ({path, method: method.toUpperCase(), operation: item[method]})));
// Those that wait for something, or end what others use.
const left = new Set([
  "GET /v1/{space}/stream", "POST /v1/_/hold", "POST /v1/_/clock", "POST /v1/{space}/actors/{kind}/{id}/call",
  "POST /v1/{space}/actors/{kind}/{id}/priority_call"
]);

function makeTarget(path, random) {
  return path.replace(/\{(\w+)\}/g, (_, name) => params[name][random(params[name].length)]);
}

const leaves = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  -1e300,
  9007199254740993n,
  2 ** 31,
  "",
  "x",
  "5s",
  "-5s",
  "1e999s",
  "99999999999d",
  "inf",
  "nan",
  "9".repeat(400),
  "\u0000",
  "\ud83d\ude00",
  "2030-01-01T00:00:00Z",
  "9999-12-31T23:59:59.999999999Z",
  "0000-01-01T00:00:00Z",
  uuid,
  "..",
  "1/s",
  "1/0s",
  "99999999999999999999/s",
  "* * * * *",
  "*/0 * * * *",
  "Daily",
  "http://127.0.0.1:1/",
  "http://[::1",
  "unix:///x",
  [],
  {},
  [[]],
  [{}],
  {a: 1}
];
const names = [
  "worker",    "value",  "delay",       "at",      "id",        "retry",   "priority",  "unique",    "limit_key",
  "token",     "result", "error",       "lock",    "max",       "wait",    "ids",       "all",       "rate",
  "url",       "secret", "concurrency", "timeout", "retention", "every",   "cron",      "timezone",  "missed",
  "jitter",    "quiet",  "max_wait",    "window",  "edge",      "payload", "max_count", "types",     "type",
  "workspace", "next",   "check",       "set",     "clear",     "emit",    "cast",      "touch",     "append",
  "complete",  "fail",   "extend",      "release", "key",       "kind",    "message",   "partition", "debouncer",
  "version",   "schema", "mailbox_max", "reason",  "until",     "by",      "atomic",    "advance",   "factor",
  "then",      "for",    "trust",       "limit"
];

function makeValue(random, depth = 0) {
  const pick = random(depth > 3 ? 6 : 10);
  if (pick < 6) return leaves[random(leaves.length)];
  if (pick < 7) return Array.from({length: random(4)}, () => makeValue(random, depth + 1));
  return Object.fromEntries(
      Array.from({length: random(6)}, () => [names[random(names.length)], makeValue(random, depth + 1)]));
}

/// A body that has the right names, and odd things in some of them.
function makeBody(operation, random) {
  const schema = operation.requestBody?.content["application/json"].schema;
  const properties = schema && findProperties(schema);
  if (!properties || random(4) === 0) return makeValue(random);
  const chosen = Object.keys(properties).filter(() => random(2) === 0);
  return Object.fromEntries(chosen.map((name) => [name, makeValue(random, 1)]));
}

function findProperties(schema) {
  if (schema.$ref) return findProperties(document.components.schemas[schema.$ref.split("/").pop()]);
  if (schema.oneOf) return findProperties(schema.oneOf[0]);
  return schema.properties;
}

/// A field that is null counts as one that is not there, and no body as one without fields.
function withoutNulls(value) {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
      Object.entries(value).filter(([, each]) => each !== null).map(([name, each]) => [name, withoutNulls(each)]));
}

const toJson = (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? Number(each) : each));

test(
    "odd values in every field of every route are answered as the document says, and never by 500", {timeout: 60_000},
    async () => {
      const random = randomNumbers(42);
      const wrong = new Set();
      const all = operations.filter(({method, path}) => !left.has(`${method} ${path}`));
      for (let round = 0; round < 60; ++round)
        await Promise.all(all.map(async ({method, path, operation}) => {
          const target = makeTarget(path, random);
          const raw = method === "GET" || method === "DELETE" ? undefined : toJson(makeBody(operation, random));
          try {
            const answer = await daemon.request(
                method, target, {raw, body: raw && (withoutNulls(JSON.parse(raw)) ?? undefined), timeout: 10_000});
            if (answer.status >= 500)
              wrong.add(`${method} ${target} ${raw?.slice(0, 300)}: ${answer.status} ${answer.text.slice(0, 200)}`);
          } catch (error) {
            wrong.add(`${method} ${target} ${raw?.slice(0, 300)}: ${error.message.slice(0, 600)}`);
          }
        }));
      assert.ok(daemon.isRunning(), `the daemon lives: ${daemon.log.slice(-2000)}`);
      assert.deepEqual([...wrong].slice(0, 20), []);
    });

test("odd queries on every route never give 500", async () => {
  const queries = [
    "limit=1e3",
    "limit=%00",
    "after=%F0%9F%98%80",
    `after=${"x".repeat(2000)}`,
    "after=0",
    "after=-1",
    "state=",
    "worker=",
    "worker=..",
    "prefix=%00",
    "prefix=%F4%8F%BF%BF",
    "wait=99999d",
    "wait=-1",
    "timeout=",
    "timeout=0",
    "delay=1e9d",
    "workspace=-0",
    "workspace=18446744073709551616",
    "=",
    "&&&",
    "?",
    "a=b=c",
    "%=%",
    "force=maybe"
  ];
  const wrong = [];
  for (const {method, path} of operations.filter(
           (each) => !left.has(`${each.method} ${each.path}`) && !each.path.includes("/history/")))
    for (const query of queries) {
      const target = `${makeTarget(path, () => 0)}?${query}`;
      const answer = await daemon.request(method, target, {timeout: 10_000});
      if (answer.status >= 500) wrong.push(`${method} ${target}: ${answer.status} ${answer.text.slice(0, 200)}`);
    }
  assert.deepEqual(wrong, []);
});

test("requests with broken bytes never end the daemon", {timeout: 60_000}, async () => {
  const random = randomNumbers(7);
  const good = [
    "POST /v1/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n" +
        "{\"worker\":\"w\",\"value\":[1]}",
    "PUT /v1/s/keys/k HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n",
    "GET /v1/s/events?worker=w&limit=5 HTTP/1.1\r\nHost: localhost\r\nIf-Match: \"x\"\r\nIdempotency-Key: a\r\n\r\n",
  ];
  const one = async () => {
    let bytes = good[random(good.length)];
    for (let i = 0; i <= random(4); ++i) {
      const at = random(bytes.length);
      const how = random(4);
      const piece = how === 0 ? String.fromCharCode(random(256))
          : how === 1         ? ""
          : how === 2         ? bytes.slice(at, at + random(30)).repeat(1 + random(3))
                              : "\r\n";
      bytes = bytes.slice(0, at) + piece + bytes.slice(at + random(3));
    }
    const raw = await daemon.raw();
    await raw.send(bytes);
    raw.socket.end();
    await within(15_000, `closing after ${JSON.stringify(bytes)}`, raw.ended);
    assert.doesNotMatch(raw.text, /HTTP\/1.1 5/, JSON.stringify(bytes));
  };
  for (let round = 0; round < 40; ++round) await Promise.all(Array.from({length: 25}, one));
  await daemon.expect(200, "GET", "/healthz");
});
