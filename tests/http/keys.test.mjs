// /v1/{space}/keys and /v1/{space}/transact
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";

const daemon = await Daemon.shared();

test("a key is put, read, changed, listed and removed, with its version as ETag", async () => {
  const at = `/v1/${newSpace()}/keys/k`;
  const made = await daemon.put(at, {a: [1, null, "ü"]});
  assert.equal(made.status, 201);
  const read = await daemon.get(at);
  assert.deepEqual([read.status, read.json, read.headers.etag], [200, {a: [1, null, "ü"]}, made.headers.etag]);
  const changed = await daemon.put(at, 2);
  assert.equal(changed.status, 200);
  assert.ok(changed.headers.etag > made.headers.etag, "versions sort in order of time");
  await daemon.expect(204, "DELETE", at);
  await daemon.refuse(404, "not_found", "GET", at);
});

test("If-Match and If-None-Match guard a write", async () => {
  const at = `/v1/${newSpace()}/keys/k`;
  const write = (headers, method = "PUT", body = 1) =>
      daemon.request(method, at, {headers, body: method === "PUT" ? body : undefined});
  assert.equal((await write({"If-Match": "*"})).status, 412);
  const made = await write({"If-None-Match": "*"});
  assert.equal(made.status, 201);
  assert.equal((await write({"If-None-Match": "*"})).status, 412);
  const etag = made.headers.etag;
  const changed = await write({"If-Match": etag}, "PUT", 2);
  assert.equal(changed.status, 200);
  for (const method of ["PUT", "DELETE"]) {
    const stale = await write({"If-Match": etag}, method, 3);
    assert.deepEqual([stale.status, stale.json.error.code], [412, "wrong_state"]);
    assert.equal((await write({"If-Match": "nonsense"}, method, 3)).status, 400);
  }
  assert.equal((await daemon.get(at)).json, 2);
  assert.equal((await write({"If-Match": changed.headers.etag}, "DELETE")).status, 204);
});

test("keys may be any text that is one", async () => {
  const space = newSpace();
  const names = ["a b", "a/b", "a%2Fb", "ü→😀", "a?b#c", "...", "'\"\\", "+", "x".repeat(200), "😀".repeat(50)];
  for (const name of names) await daemon.expect(201, "PUT", `/v1/${space}/keys/${encodeURIComponent(name)}`, name);
  const seen = [];
  let after = "";
  do {
    const page = await daemon.expect(200, "GET", `/v1/${space}/keys?limit=3&after=${encodeURIComponent(after)}`);
    for (const each of page.items) assert.equal(each.key, each.value);
    seen.push(...page.items.map((each) => each.key));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen.sort(), names.slice().sort());
  assert.deepEqual(
      (await daemon.expect(200, "GET", `/v1/${space}/keys?prefix=a%2F`)).items.map((each) => each.key), ["a/b"]);
  for (const bad
           of ["%2E%2E", "..", ".", "%2e", "%00", "a%0Ab", "%7f", "%ff", "%C3", "%zz", "%4", "x".repeat(201),
               "%F0%9F%98%80".repeat(51), "%ED%A0%80"])
    for (const method of ["GET", "PUT", "DELETE"]) {
      const answer = await daemon.request(method, `/v1/${space}/keys/${bad}`, {body: method === "PUT" ? 1 : undefined});
      assert.equal(answer.status, 400, `${method} ${bad}: ${answer.text}`);
    }
  for (const bad of [`/v1/${space}/keys/`, `/v1/${space}/keys/a/b`, `/v1//keys/a`])
    assert.equal((await daemon.get(bad)).status, 404);
  for (const bad of ["no%20space", "_", "-a", "x".repeat(65), "%C3%BC", ".."])
    await daemon.refuse(400, "invalid_argument", "GET", `/v1/${bad}/keys/a`);
});

test("a page that is cut short for its size goes on where it ended", async () => {
  const space = newSpace();
  const value = "x".repeat(900_000);
  for (let i = 0; i < 8; ++i) await daemon.expect(201, "PUT", `/v1/${space}/keys/k${i}`, value);
  const seen = [];
  let after = "";
  do {
    const page = await daemon.expect(200, "GET", `/v1/${space}/keys?after=${after}`);
    seen.push(...page.items.map((each) => each.key));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen, Array.from({length: 8}, (_, i) => `k${i}`));
});

test("a transaction does all of it, with one answer per item", async () => {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types: {shop: {invoice: 1}}});
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, {quiet: "1h"});
  await daemon.expect(201, "PUT", `/v1/${space}/kinds/k`, {url: "http://127.0.0.1:1/"});
  await daemon.expect(201, "PUT", `/v1/${space}/keys/old`, 1);
  await daemon.expect(201, "POST", `/v1/${space}/events`, [{worker: "w"}, {worker: "w"}]);
  const {items: [a, b]} = await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {});
  const answer = await daemon.expect(200, "POST", `/v1/${space}/transact`, {
    check: [{key: "new"}],
    set: [{key: "new", value: {x: 1}}],
    clear: ["old"],
    emit: [{worker: "v", value: 1}, {worker: "v", value: 2}],
    cast: [{kind: "k", id: "a", message: 1}],
    touch: [{debouncer: "d", key: "t", payload: 1}],
    append: [{partition: "p", type: "shop", workspace: 1, next: ["invoice"]}],
    complete: [{id: a.id, token: a.token, result: "r"}],
    fail: [{id: b.id, token: b.token, error: "e", retry: false}],
  });
  assert.deepEqual(
      Object.fromEntries(Object.entries(answer).map(([name, list]) => [name, list.length])),
      {version: 16, check: 1, set: 1, clear: 1, emit: 2, cast: 1, touch: 1, append: 1, complete: 1, fail: 1});
  assert.deepEqual(answer.append, [{offset: 1, numbers: [1]}]);
  const read = await daemon.get(`/v1/${space}/keys/new`);
  assert.deepEqual([read.json, read.headers.etag], [{x: 1}, `"${answer.version}"`]);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/keys/old`);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/history/${a.id}`)).result, "r");
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/events/${b.id}`)).state, "dead");
  await daemon.expect(
      200, "POST", `/v1/${space}/transact`,
      {check: [{key: "new", version: answer.version}], set: [{key: "new", value: 2}]});
});

test("a transaction of which a part is wrong does nothing", async () => {
  const space = newSpace();
  const made = await daemon.put(`/v1/${space}/keys/k`, 1);
  await daemon.put(`/v1/${space}/keys/k`, 2);
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types: {shop: {invoice: 1}}});
  await daemon.expect(201, "PUT", `/v1/${space}/debouncers/d`, {quiet: "1h"});
  const fine = {
    set: [{key: "s", value: 1}],
    emit: [{worker: "w"}],
    touch: [{debouncer: "d", key: "t"}],
    append: [{partition: "p", type: "shop", workspace: 1, next: ["invoice"]}]
  };
  const token = "00000000000000010000";
  const id = "00000000-0000-7000-8000-000000000000";
  const wrong = [
    [409, {check: [{key: "k"}]}],
    [409, {check: [{key: "k", version: made.headers.etag.slice(1, -1)}]}],
    [409, {check: [{key: "none", version: "0000000000000001"}]}],
    [400, {check: [{key: "k", version: "x"}]}],
    [400, {check: [{}]}],
    [400, {set: [{value: 1}]}],
    [400, {set: [{key: "..", value: 1}]}],
    [400, {set: {}}],
    [400, {clear: [5]}],
    [400, {clear: [".."]}],
    [400, {emit: [{worker: "w"}, {}]}],
    [400, {cast: [{kind: "no name", id: "a"}]}],
    [400, {cast: [{kind: "k"}]}],
    [404, {touch: [{debouncer: "none", key: "t"}]}],
    [404, {append: [{partition: "none", type: "shop", workspace: 1}]}],
    [400, {append: [{partition: "p", type: "none", workspace: 1}]}],
    [400, {complete: [{id}]}],
    [400, {complete: [{id, token: "zzz"}]}],
    [400, {colour: []}],
    [413, {clear: Array(1001).fill("k")}],
    [413, {clear: Array(600).fill("k"), set: Array(600).fill({key: "k"})}],
  ];
  for (const [status, part] of wrong) {
    const answer = await daemon.post(`/v1/${space}/transact`, {...fine, ...part});
    assert.equal(answer.status, status, `${JSON.stringify(part).slice(0, 100)}: ${answer.text}`);
  }
  for (const body of [[], "text", 5])
    await daemon.refuse(400, "invalid_argument", "POST", `/v1/${space}/transact`, body);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/keys/s`);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/workers/w`)).counts.total, 0);
  assert.equal((await daemon.expect(200, "GET", `/v1/${space}/debouncers/d/keys/t`)).status, "idle");
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/partitions/p/log`)).items, []);
});

test("a stale token in a transaction refuses all of it", async () => {
  const space = newSpace();
  await daemon.expect(201, "POST", `/v1/${space}/events`, {worker: "w"});
  const {items: [{id, token}]} = await daemon.expect(200, "POST", `/v1/${space}/workers/w/claim`, {});
  await daemon.expect(200, "POST", `/v1/${space}/events/${id}/release`, {token});
  for (const part of [{complete: [{id, token}]}, {fail: [{id, token, error: "e"}]}])
    await daemon.refuse(409, "stale_token", "POST", `/v1/${space}/transact`, {set: [{key: "s", value: 1}], ...part});
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/keys/s`);
});
