// What every route has in common: who is let in, methods, limits, JSON, HEAD
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";
import {document} from "./schema.mjs";

const daemon = await Daemon.shared();

const residentMiB = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.child.pid}/status`, "utf8"))[1]) / 1024;

test("only a Host that is this machine is served", async () => {
  for (const host of ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:7420", "127.8.9.10", "[::1]", "[::1]:7420"])
    await daemon.expect(200, "GET", "/v1/_/status", undefined, {headers: {Host: host}});
  for (const host
           of ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil", "[::2]", "10.0.0.1",
               "evil.example:7420", "localhost@evil.example"]) {
    const answer = await daemon.get("/v1/_/status", {headers: {Host: host}});
    assert.ok([400, 421].includes(answer.status), `${host}: ${answer.status}`);
  }
});

test("web pages of other sites are not served", async () => {
  const space = newSpace();
  const own = `127.0.0.1:${daemon.port}`;
  const bad = [
    {Origin: "http://evil.example"}, {Origin: "null"}, {Origin: `http://${own}.evil.example`}, {Origin: ""},
    {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {Origin: "http://localhost:1"}
  ];
  for (const headers of bad)
    await daemon.refuse(403, "permission_denied", "POST", `/v1/${space}/events`, {worker: "w"}, {headers});
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/workers`)).items, []);
  for (const headers of [{Origin: `http://${own}`, "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}])
    await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"}, {headers});
});

test("every path answers 405 with Allow to a method that it does not take", async () => {
  const fill = {
    space: "s",
    id: "00000000-0000-7000-8000-000000000000",
    worker: "w",
    name: "n",
    kind: "k",
    partition: "p",
    key: "x"
  };
  for (const [path, item] of Object.entries(document.paths)) {
    const target = path.replace(/\{(\w+)\}/g, (_, name) => fill[name]);
    const allowed = Object.keys(item).filter((name) => name !== "parameters").map((name) => name.toUpperCase()).sort();
    for (const method of ["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"].filter(
             (each) => !allowed.includes(each))) {
      const answer = await daemon.request(method, target);
      assert.equal(answer.status, 405, `${method} ${target}`);
      assert.deepEqual(
          answer.headers.allow.split(", ").filter((each) => each !== "HEAD").sort(), allowed, `${method} ${target}`);
    }
  }
});

test("what is nowhere is 404", async () => {
  for (const path
           of ["/v1", "/v1/", "/v2/a/events", "/v1/a", "/v1/a/b", "/v1/a/events/", "//v1/a/events", "/v1/_/nothing",
               "/healthz/", "/V1/a/events", "/v1/a/events/x/y/z"])
    assert.equal((await daemon.get(path)).status, 404, path);
});

test("HEAD answers as GET, without a body", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/keys/k`, "value");
  for (const path of ["/healthz", "/metrics", "/v1/_/status", `/v1/${space}/keys/k`, `/v1/${space}/workers`]) {
    const answer = await daemon.request("HEAD", path);
    assert.deepEqual([answer.status, answer.text], [200, ""], path);
  }
  const [head, get] = [await daemon.request("HEAD", `/v1/${space}/keys/k`), await daemon.get(`/v1/${space}/keys/k`)];
  assert.deepEqual(
      [head.headers["content-length"], head.headers.etag], [get.headers["content-length"], get.headers.etag]);
  assert.equal((await daemon.request("HEAD", `/v1/${space}/keys/none`)).status, 404);
  assert.equal((await daemon.request("HEAD", `/v1/${space}/transact`)).status, 405);
});

test("HEAD of the stream ends at once", async () => {
  const raw = await daemon.raw();
  await raw.send("HEAD /v1/s/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const answer = await raw.answer({head: true});
  assert.equal(answer.status, 200);
  assert.equal(raw.text, "", "HEAD has no body");
  raw.end();
});

test("malformed JSON is 400 and changes nothing", async () => {
  const space = newSpace();
  const bad = [
    "{", "[1,]", "{\"a\":1,}", "{'a':1}", "nul", "NaN", "01", "1.", "+1", "\"\\x\"", "\"\t\"", "\"\\ud800\"",
    "{\"a\":1 \"b\":2}", "1 2", "\ufeff1", " ", "{\"worker\":\"w\"}x", "{\"worker\":\"w\",\"worker\":\"v\"}", "1e999"
  ];
  for (const raw of bad) {
    const answer = await daemon.request("POST", `/v1/${space}/events`, {raw});
    assert.equal(answer.status, 400, `${raw}: ${answer.status} ${answer.text}`);
    const key = await daemon.request("PUT", `/v1/${space}/keys/k`, {raw});
    assert.equal(key.status, 400, `${raw}: ${key.status} ${key.text}`);
  }
  for (const raw
           of [Buffer.from([0x22, 0xff, 0x22]), Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
               Buffer.from([0xff, 0xfe, 0x31, 0])])
    assert.equal((await daemon.request("PUT", `/v1/${space}/keys/k`, {raw})).status, 400);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/keys`)).items, []);
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/workers`)).items, []);
});

test("JSON goes 64 levels deep", async () => {
  const space = newSpace();
  const nested = (depth) => "[".repeat(depth) + "]".repeat(depth);
  assert.equal((await daemon.request("PUT", `/v1/${space}/keys/k`, {raw: nested(64)})).status, 201);
  assert.equal((await daemon.request("PUT", `/v1/${space}/keys/l`, {raw: nested(65)})).status, 400);
  const objects = (depth) => "{\"a\":".repeat(depth) + "1" +
      "}".repeat(depth);
  assert.equal((await daemon.request("PUT", `/v1/${space}/keys/m`, {raw: objects(65)})).status, 400);
});

test("a million brackets are refused in constant memory", async () => {
  const before = residentMiB();
  for (const piece of ["[", "{\"a\":", "[["])
    for (let i = 0; i < 3; ++i)
      assert.equal((await daemon.request("POST", "/v1/s/events", {raw: piece.repeat(1_000_000)})).status, 400);
  assert.ok(residentMiB() - before < 64, `${before} MiB became ${residentMiB()} MiB`);
});

test("numbers come back as they were sent", async () => {
  const at = `/v1/${newSpace()}/keys/k`;
  for (const raw
           of ["0", "-1", "9007199254740991", "9223372036854775807", "-9223372036854775808", "0.1", "1e100", "5e-324",
               "-0.0"]) {
    assert.ok((await daemon.request("PUT", at, {raw})).status < 300, raw);
    assert.equal(Number((await daemon.get(at)).text), Number(raw), raw);
  }
  assert.equal((await daemon.request("PUT", at, {raw: "9223372036854775807"})).text, "9223372036854775807");
});

test("a value has at most 1 MiB", async () => {
  const space = newSpace();
  const most = 1 << 20;
  const takers = [
    ["PUT", `/v1/${space}/keys/k`, (value) => value],
    ["POST", `/v1/${space}/events`, (value) => ({ worker: "w", value })],
    ["POST", `/v1/${space}/transact`, (value) => ({ set: [{ key: "t", value }] })],
    ["POST", `/v1/${space}/debouncers/d/keys/k`, (value) => value],
    ["POST", `/v1/${space}/partitions/p/append`, (payload) => ({ type: "t", workspace: 1, payload })],
    ["POST", `/v1/${space}/actors/k/a/cast`, (value) => value],
  ];
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, {quiet: "1h"});
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types: {t: {}}});
  await daemon.expect(201, "PUT", `/v1/${space}/kinds/k`, {url: "http://127.0.0.1:1/"});
  const wrong = [];
  for (const [method, path, make] of takers) {
    const over = await daemon.request(method, path, { body: make("x".repeat(most + 1)) });
    if (over.status !== 413) wrong.push(`${method} ${path} with more than ${most} bytes: ${over.status}`);
    const fits = await daemon.request(method, path, { body: make("x".repeat(most - 8)) });
    if (fits.status >= 300) wrong.push(`${method} ${path} with ${most} bytes: ${fits.status} ${fits.text.slice(0, 200)}`);
  }
  assert.deepEqual(wrong, []);
});

test("an array has at most 1,000 items, a body at most 8 MiB", async () => {
  const space = newSpace();
  await daemon.refuse(413, "too_large", "POST", `/v1/${space}/events`, Array(1001).fill({worker: "w"}));
  assert.equal(
      (await daemon.expect(201, "POST", `/v1/${space}/events`, Array(1000).fill({worker: "w"}))).items.length, 1000);
  const blank = " ".repeat((8 << 20) - 1);
  assert.equal((await daemon.request("PUT", `/v1/${space}/keys/k`, {raw: `1${blank}`})).status, 201);
  const over = await daemon.request("PUT", `/v1/${space}/keys/k`, {raw: `12${blank}`});
  assert.deepEqual([over.status, over.json.error.code], [413, "too_large"]);
  assert.equal((await daemon.get(`/v1/${space}/keys/k`)).json, 1);
});

test("eight MiB of large events are taken together", async () => {
  const space = newSpace();
  const events = Array(8).fill({worker: "w", value: "x".repeat(1_000_000)});
  assert.equal((await daemon.expect(201, "POST", `/v1/${space}/events`, events)).items.length, 8);
  // A claim gives fewer than were asked for if they are large.
  let claimed = 0;
  for (let i = 0; i < 8 && claimed < 8; ++i)
    claimed += (await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {max: 8})).items.length;
  assert.equal(claimed, 8);
});

test("--listen anywhere else is refused", async () => {
  for (const address
           of ["0.0.0.0:0", "[::]:0", "10.0.0.1:0", "nonsense", "127.0.0.1", "127.0.0.1:99999", ":0",
               "127.0.0.1.evil.example:0"])
    await assert.rejects(Daemon.start(undefined, {args: ["--listen", address]}), /ended: \{"code":[12]/, address);
});
