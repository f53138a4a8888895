// HTTP/1.1 as it goes over the wire: keep-alive, pipelining, chunks, and what smugglers send
import assert from "node:assert/strict";
import {readdirSync} from "node:fs";
import {describe, test} from "node:test";

import {Daemon, newSpace, until, within} from "./daemon.mjs";

const daemon = await Daemon.shared();

const host = "Host: localhost\r\n";
const put = (space, key, body) =>
    `PUT /v1/${space}/keys/${key} HTTP/1.1\r\n${host}Content-Length: ${body.length}\r\n\r\n${body}`;
const keys = async (space) => (await daemon.expect(200, "GET", `/v1/${space}/keys`)).items.map((each) => each.key);

test("a connection serves one request after the other", async () => {
  const raw = await daemon.raw();
  for (let i = 0; i < 20; ++i) {
    await raw.send(`GET /healthz HTTP/1.1\r\n${host}\r\n`);
    assert.equal((await raw.answer()).status, 200);
  }
  await raw.send(`GET /healthz HTTP/1.1\r\n${host}Connection: close\r\n\r\n`);
  assert.equal((await raw.answer()).headers.connection, "close");
  await within(5_000, "closing", raw.ended);
});

test("HTTP/1.0 is answered and closed", async () => {
  const raw = await daemon.raw();
  await raw.send(`GET /healthz HTTP/1.0\r\n${host}\r\n`);
  assert.equal((await raw.answer()).status, 200);
  await within(5_000, "closing", raw.ended);
});

test("pipelined requests are answered in order", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  let text = "";
  for (let i = 0; i < 50; ++i)
    text += put(space, `k${i}`, String(i)) + `GET /v1/${space}/keys/k${i} HTTP/1.1\r\n${host}\r\n`;
  await raw.send(text);
  for (let i = 0; i < 50; ++i) {
    assert.equal((await raw.answer()).status, 201);
    assert.equal((await raw.answer()).body, String(i));
  }
  raw.end();
});

test("a request that comes byte by byte is one", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  for (const byte of put(space, "k", "[1,2]")) await raw.send(byte);
  assert.equal((await raw.answer()).status, 201);
  raw.end();
});

test("chunks are put together", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  await raw.send(`PUT /v1/${space}/keys/k HTTP/1.1\r\n${
      host}Transfer-Encoding: chunked\r\n\r\n3\r\n{"a\r\nA;x=y\r\n":"b","c":\r\n2\r\n1}\r\n0\r\nX: y\r\n\r\n`);
  assert.equal((await raw.answer()).status, 201);
  await raw.send(`GET /v1/${space}/keys/k HTTP/1.1\r\n${host}\r\n`);
  assert.deepEqual(JSON.parse((await raw.answer()).body), {a: "b", c: 1});
  raw.end();
});

test("chunks of more than 8 MiB are 413", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  await raw.send(`PUT /v1/${space}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n`);
  const mebibyte = `100000\r\n${" ".repeat(1 << 20)}\r\n`;
  for (let i = 0; i < 9; ++i) await Promise.race([raw.send(mebibyte), raw.ended]);
  assert.equal((await raw.answer()).status, 413);
  await within(10_000, "closing", raw.ended);
  assert.deepEqual(await keys(space), []);
});

test("Expect: 100-continue is told to go on, or why not", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  await raw.send(`PUT /v1/${space}/keys/k HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 1\r\n\r\n`);
  assert.equal((await raw.answer()).status, 100);
  await raw.send("5");
  assert.equal((await raw.answer()).status, 201);
  await raw.send(`PUT /v1/${space}/keys/k HTTP/1.1\r\n${host}Expect: 100-continue\r\nContent-Length: 9000000\r\n\r\n`);
  assert.equal((await raw.answer()).status, 413);
  raw.end();
});

describe("what could be read in two ways is refused, and nothing is smuggled", () => {
  const hidden = (space) => put(space, "smuggled", "1");
  const corpus = {
    "Content-Length and Transfer-Encoding": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${
        host}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden(s)}`,
    "Transfer-Encoding and Content-Length": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${
        host}Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n${hidden(s)}`,
    "two Content-Lengths": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 5\r\n\r\n1${hidden(s)}`,
    "a list of Content-Lengths": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 1, 5\r\n\r\n1${hidden(s)}`,
    "a negative Content-Length": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n${hidden(s)}`,
    "a Content-Length with a sign": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: +1\r\n\r\n1${hidden(s)}`,
    "a hexadecimal Content-Length": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 0x1\r\n\r\n1${hidden(s)}`,
    "a Content-Length beyond 64 bits": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 18446744073709551617\r\n\r\n1${hidden(s)}`,
    "an unknown Transfer-Encoding": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden(s)}`,
    "an unknown Transfer-Encoding, and the next request as its body": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n${hidden(s)}`,
    "chunked that is not the last": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${hidden(s)}`,
    "two Transfer-Encodings": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${
        host}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${hidden(s)}`,
    "a chunk size that is none": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\nzz\r\n1\r\n0\r\n\r\n${hidden(s)}`,
    "a chunk size with a sign": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n-1\r\n1\r\n0\r\n\r\n${hidden(s)}`,
    "a chunk size with 0x": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n0x1\r\n1\r\n0\r\n\r\n${hidden(s)}`,
    "a chunk size beyond 64 bits": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${
        host}Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\n1\r\n0\r\n\r\n${hidden(s)}`,
    "a chunk without its end": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\n\r\n1\r\n12\r\n0\r\n\r\n${hidden(s)}`,
    "a header that is folded": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${
        host}Transfer-Encoding:\r\n chunked\r\nContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "a space before the colon": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length : 1\r\n\r\n1${hidden(s)}`,
    "a line that begins with a space": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n Host: localhost\r\nContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "a bare LF in the head": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\nHost: localhost\nContent-Length: 1\n\n1${hidden(s)}`,
    "a bare CR in a header": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}X: a\rContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "a NUL in a header": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}X: a\0b\r\nContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "a header without a name": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}: x\r\nContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "two Hosts": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}Host: evil.example\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1`,
    "an empty Host": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\nHost: \r\nContent-Length: 1\r\nConnection: close\r\n\r\n1`,
    "no Host": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\nContent-Length: 1\r\nConnection: close\r\n\r\n1`,
    "the absolute form": (s) =>
        `PUT http://evil.example/v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 1\r\nConnection: close\r\n\r\n1`,
    "the asterisk form": () => `OPTIONS * HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    "CONNECT": () => `CONNECT localhost:1 HTTP/1.1\r\n${host}Connection: close\r\n\r\n`,
    "a target with a space": (s) => `PUT /v1/${s}/keys/a b HTTP/1.1\r\n${host}Content-Length: 1\r\n\r\n1${hidden(s)}`,
    "a method that is none": (s) => `P(T /v1/${s}/keys/k HTTP/1.1\r\n${host}Content-Length: 1\r\n\r\n1${hidden(s)}`,
    "HTTP/2": () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/9.9": (s) => `PUT /v1/${s}/keys/k HTTP/9.9\r\n${host}Content-Length: 1\r\n\r\n1${hidden(s)}`,
    "HTTP/0.9": () => "GET /healthz\r\n\r\n",
    "TLS": () => "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" +
        "\0".repeat(200) + "\r\n\r\n",
    "a huge header": (s) =>
        `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}X: ${"x".repeat(100_000)}\r\nContent-Length: 1\r\n\r\n1${hidden(s)}`,
    "ten thousand headers": (s) => `PUT /v1/${s}/keys/k HTTP/1.1\r\n${host}${
                                   "X-A: bcdefghijklmnop\r\n".repeat(10_000)}Content-Length: 1\r\n\r\n1${hidden(s)}`,
    "a huge target": (s) =>
        `PUT /v1/${s}/keys/${"x".repeat(100_000)} HTTP/1.1\r\n${host}Content-Length: 1\r\n\r\n1${hidden(s)}`,
  };
  for (const [name, make] of Object.entries(corpus))
    test(name, async () => {
      const space = newSpace();
      const raw = await daemon.raw();
      await raw.send(make(space));
      const answer = await raw.answer();
      if (answer) assert.ok(answer.status >= 400 && answer.status < 500, `answered ${answer.status} ${answer.body}`);
      if (answer) assert.match(answer.headers["content-type"], /problem\+json/);
      await within(5_000, "closing the connection", raw.ended);
      assert.ok(!/HTTP\/1.1 2/.test(raw.text), "nothing more is answered");
      assert.deepEqual(await keys(space), []);
    });
});

test("a body that never comes whole changes nothing", async () => {
  const space = newSpace();
  const raw = await daemon.raw();
  await raw.send(`PUT /v1/${space}/keys/k HTTP/1.1\r\n${host}Content-Length: 10\r\n\r\n12345`);
  raw.socket.end();
  await within(5_000, "closing", raw.ended);
  assert.deepEqual(await keys(space), []);
});

test("a client that ends its side after the request is answered still", async () => {
  const raw = await daemon.raw();
  await raw.send(`GET /healthz HTTP/1.1\r\n${host}\r\n`);
  raw.socket.end();
  assert.equal((await raw.answer())?.status, 200);
});

test("a connection whose client has hung up is closed, whatever it waits for", async (t) => {
  const own = await Daemon.start(t);
  const open = () => readdirSync(`/proc/${own.child.pid}/fd`).length;
  const {id} = await own.expect(201, "POST", "/v1/s/events", {worker: "w"});
  const before = open();
  const waiting = [
    `GET /v1/s/history/${id}?wait=10m HTTP/1.1\r\n${host}\r\n`,
    `POST /v1/s/workers/v/claim HTTP/1.1\r\n${host}Content-Length: 13\r\n\r\n{"wait":"5m"}`,
    `GET /v1/s/stream HTTP/1.1\r\n${host}\r\n`
  ];
  const clients = await Promise.all(Array.from({length: 60}, () => own.raw()));
  await Promise.all(clients.map((raw, i) => raw.send(waiting[i % 3])));
  await until("all are connected", () => open() >= before + 60);
  for (const [i, raw] of clients.entries()) i % 2 ? raw.end() : raw.socket.resetAndDestroy();
  await until("all were let go", () => open() <= before + 1, 5_000)
      .catch(() => assert.fail(`${open() - before} of 60 connections are still open`));
});

test("a head that never ends is cut off, and others are served meanwhile", {timeout: 30_000}, async () => {
  const slow = await Promise.all(Array.from({length: 50}, () => daemon.raw()));
  for (const raw of slow) await raw.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\n");
  const drip = setInterval(() => slow.forEach((raw) => raw.socket.write("X: y\r\n")), 500);
  try {
    const began = performance.now();
    await daemon.expect(200, "GET", "/healthz");
    assert.ok(performance.now() - began < 1_000);
    const answers = await Promise.all(slow.map((raw) => raw.answer({limit: 20_000})));
    for (const answer of answers) assert.ok(answer === null || answer.status === 408, answer?.status);
    await within(5_000, "closing", Promise.all(slow.map((raw) => raw.ended)));
  } finally {
    clearInterval(drip);
  }
});
