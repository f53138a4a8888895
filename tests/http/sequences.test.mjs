// /v1/{space}/partitions
import assert from "node:assert/strict";
import {test} from "node:test";

import {Daemon, newSpace} from "./daemon.mjs";

const daemon = await Daemon.shared();

async function partition(types = {
  shop: {invoice: 1, order: 1000}
}) {
  const space = newSpace();
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/p`, {types});
  return {space, at: `/v1/${space}/partitions/p`};
}

test("a partition is put, read back, put back and listed", async () => {
  const {space, at} = await partition();
  const made = await daemon.expect(200, "GET", at);
  assert.deepEqual([made.types, made.offset], [{shop: {invoice: 1, order: 1000}}, 0]);
  assert.deepEqual(await daemon.expect(200, "PUT", at, made), made);
  await daemon.expect(201, "PUT", `/v1/${space}/partitions/q`, {types: {}});
  const first = await daemon.expect(200, "GET", `/v1/${space}/partitions?limit=1`);
  const second = await daemon.expect(200, "GET", `/v1/${space}/partitions?limit=1&after=${first.next}`);
  assert.deepEqual([first.items[0].name, second.items[0].name], ["p", "q"]);
  await daemon.refuse(404, "not_found", "GET", `/v1/${space}/partitions/none`);
});

test("a partition is removed, as whatever can be put", async () => {
  const {at} = await partition();
  const answer = await daemon.request("DELETE", at);
  assert.equal(answer.status, 204, answer.text);
  await daemon.refuse(404, "not_found", "GET", at);
});

test("impossible partitions are refused and nothing is stored", async () => {
  const space = newSpace();
  const bad = [
    {types: []}, {types: {shop: 1}}, {types: {shop: {invoice: 0}}}, {types: {shop: {invoice: -1}}},
    {types: {shop: {invoice: 1.5}}}, {types: {shop: {invoice: "x"}}}, {types: {shop: {invoice: "0"}}},
    {types: {"no name": {}}}, {types: {shop: {"no name": 1}}}, {trust: "me"}, {colour: 1}, []
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/partitions/p`, body);
  await daemon.refuse(400, "invalid_argument", "PUT", `/v1/${space}/partitions/no%20name`, {types: {}});
  assert.deepEqual((await daemon.expect(200, "GET", `/v1/${space}/partitions`)).items, []);
});

test("append draws numbers, each once, from the first on", async () => {
  const {at} = await partition();
  assert.deepEqual(await daemon.expect(200, "GET", `${at}/numbers?workspace=7`), {});
  const event = {type: "shop", workspace: 7, next: ["invoice", "invoice", "order"], payload: {a: 1}};
  assert.deepEqual(await daemon.expect(201, "POST", `${at}/append`, event), {offset: 1, numbers: [1, 2, 1000]});
  assert.deepEqual(await daemon.expect(201, "POST", `${at}/append`, {...event, next: []}), {offset: 2, numbers: []});
  const many = await daemon.expect(201, "POST", `${at}/append`, [event, {...event, workspace: 8}]);
  assert.deepEqual(many.items, [{offset: 3, numbers: [3, 4, 1001]}, {offset: 4, numbers: [1, 2, 1000]}]);
  assert.deepEqual(await daemon.expect(200, "GET", `${at}/numbers?workspace=7`), {invoice: 4, order: 1001});
  const log = await daemon.expect(200, "GET", `${at}/log`);
  assert.deepEqual(log.items.map((each) => each.offset), [1, 2, 3, 4]);
  assert.deepEqual(log.items[0].numbers, [["invoice", 1], ["invoice", 2], ["order", 1000]]);
  assert.deepEqual([log.items[0].type, log.items[0].workspace, log.items[0].payload], ["shop", 7, {a: 1}]);
});

test("what cannot be appended is refused, nothing drawn", async () => {
  const {at} = await partition();
  const good = {type: "shop", workspace: 7, next: ["invoice"]};
  const bad = [
    {...good, type: "bakery"}, {...good, next: ["receipt"]}, {...good, next: ["invoice", "receipt"]},
    {...good, next: "invoice"}, {...good, next: [1]}, {...good, workspace: -1}, {...good, workspace: 1.5},
    {...good, workspace: "x"}, {type: "shop"}, {workspace: 7}, {...good, colour: 1}, [good, {...good, type: "bakery"}],
    [good, 5], "text", null
  ];
  for (const body of bad) await daemon.refuse(400, "invalid_argument", "POST", `${at}/append`, body);
  await daemon.refuse(413, "too_large", "POST", `${at}/append`, Array(1001).fill(good));
  assert.deepEqual(await daemon.expect(200, "GET", `${at}/numbers?workspace=7`), {});
  assert.deepEqual((await daemon.expect(200, "GET", `${at}/log`)).items, []);
  await daemon.refuse(404, "not_found", "POST", at.replace(/p$/, "none") + "/append", good);
});

test("the log is read page by page", async () => {
  const {at} = await partition();
  await daemon.expect(
      201, "POST", `${at}/append`, Array.from({length: 25}, (_, i) => ({type: "shop", workspace: i, payload: i})));
  const seen = [];
  let after = "0";
  do {
    const page = await daemon.expect(200, "GET", `${at}/log?after=${after}&limit=10`);
    seen.push(...page.items.map((each) => each.payload));
    after = page.next;
  } while (after !== null);
  assert.deepEqual(seen, Array.from({length: 25}, (_, i) => i));
  for (const bad of ["after=x", "after=-1", "limit=0", "after=99999999999999999999"])
    await daemon.refuse(400, "invalid_argument", "GET", `${at}/log?${bad}`);
  for (const bad of ["", "?workspace=", "?workspace=x", "?workspace=-1"])
    await daemon.refuse(400, "invalid_argument", "GET", `${at}/numbers${bad}`);
  for (const path of ["log", "numbers?workspace=7"])
    await daemon.refuse(404, "not_found", "GET", at.replace(/p$/, "none") + "/" + path);
});

test("first numbers may be raised and types added, and no number is lowered", async () => {
  const {at} = await partition();
  const draw = async () =>
      (await daemon.expect(201, "POST", `${at}/append`, {type: "shop", workspace: 7, next: ["invoice"]})).numbers[0];
  assert.equal(await draw(), 1);
  await daemon.expect(200, "PUT", at, {types: {shop: {invoice: 50, order: 1000}, bakery: {bread: 1}}});
  assert.equal(await draw(), 50);
  await daemon.request("PUT", at, {body: {types: {shop: {invoice: 1, order: 1000}, bakery: {bread: 1}}}});
  assert.equal(await draw(), 51);
});

test("numbers above 2^53 are texts, and are taken as such", async () => {
  const {at} = await partition({shop: {invoice: "9007199254740993"}});
  const {numbers} = await daemon.expect(
      201, "POST", `${at}/append`, {type: "shop", workspace: "18446744073709551615", next: ["invoice"]});
  assert.deepEqual(numbers, ["9007199254740993"]);
  assert.equal((await daemon.expect(200, "GET", `${at}/log`)).items[0].workspace, "18446744073709551615");
});
