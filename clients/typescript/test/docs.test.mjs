// The blocks of the documentation are run, so that they stay true.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { daemon, test } from "./daemon.mjs";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const readme = fileURLToPath(new URL("../README.md", import.meta.url));

/** The fenced blocks of a page: {language, text, line}. */
async function blocksOf(path) {
  const text = await readFile(path, "utf8");
  return [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map((found) => ({
    language: found[1],
    text: found[2],
    line: text.slice(0, found.index).split("\n").length + 1,
  }));
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

/** Runs a program to its end, in a group of processes of its own that goes with it; what it printed. */
async function run(command, args, options) {
  const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let errors = "";
  child.stdout.on("data", (text) => (out += text));
  child.stderr.on("data", (text) => (errors += text));
  const [code] = await once(child, "exit");
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // Nobody is left of it, as it should be.
  }
  return { code, out, errors };
}

/** Whether each key that is documented is answered, at every depth; values are those of another day. */
function assertShape(actual, documented, where) {
  if (documented === null || typeof documented !== "object") return;
  assert.ok(actual !== null && typeof actual === "object", `${where}: ${JSON.stringify(actual)}`);
  for (const [key, value] of Object.entries(documented)) {
    assert.ok(key in actual, `${where}: no ${key} in ${JSON.stringify(actual)}`);
    assertShape(actual[key], value, `${where}.${key}`);
  }
}

/** The last JSON that was printed; answers come without line ends. */
function lastJson(text) {
  for (let at = text.lastIndexOf("{"); at >= 0; at = text.lastIndexOf("{", at - 1)) {
    // The outermost one begins where what is behind it is JSON, and nothing of an answer stands before it.
    if (at > 0 && !/[}\]\n\d"]/.test(text[at - 1])) continue;
    try {
      return JSON.parse(text.slice(at));
    } catch {
      // Further to the left.
    }
    if (at === 0) break;
  }
  return undefined;
}

test("each recipe of docs/guides/http.md works as it is written, in order", async (t) => {
  const at = await daemon(t);
  const bin = await mkdtemp(join(tmpdir(), "perdure-test-"));
  t.after(() => rm(bin, { recursive: true, force: true }));
  await symlink(process.env.PERDURE_BINARY, join(bin, "perdure"));
  const ports = { 7420: new URL(at.url).port, 7421: await freePort(), 8080: await freePort() };
  const blocks = await blocksOf(join(root, "docs/guides/http.md"));
  // A request that is refused must not go unnoticed.
  let script = 'set -eo pipefail\ncurl() { command curl --fail-with-body "$@"; }\n';
  const recipes = [];
  for (const [i, block] of blocks.entries()) {
    if (block.language !== "sh") continue;
    recipes.push({ ...block, shown: blocks[i + 1]?.language === "json" ? blocks[i + 1].text : undefined });
    script += `printf '\\n=== %s\\n' ${block.line}\n${block.text}`;
  }
  script = script.replace(/:(7420|7421|8080)\b/g, (_, port) => `:${ports[port]}`);
  script = script.replace("counter_plain.mjs 8080", `counter_plain.mjs ${ports[8080]}`);
  assert.ok(recipes.length > 20);
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
  const { code, out, errors } = await run("bash", ["-c", script], { cwd: root, env });
  assert.equal(code, 0, `the last recipe failed:\n${out.slice(-2_000)}\n${errors}`);
  const printed = new Map(out.split(/^=== /m).map((part) => [Number.parseInt(part, 10), part.replace(/^\d+\n/, "")]));
  for (const { line, shown } of recipes) {
    if (!shown) continue;
    const text = printed.get(line).trim();
    const actual = lastJson(text);
    assert.notEqual(actual, undefined, `line ${line} printed no JSON: ${text}`);
    assertShape(actual, JSON.parse(shown), `docs/guides/http.md line ${line}`);
  }
  assert.match(out, /event: event\ndata: .*"name":"invoice"/);
});

test("the programs of the README work as they are written", async (t) => {
  const at = await daemon(t);
  const blocks = (await blocksOf(readme)).filter((block) => block.language === "js");
  assert.ok(blocks.length > 0);
  for (const { text, line } of blocks) {
    // Beside this file, so that it finds the package.
    const path = fileURLToPath(new URL(`./readme_${process.pid}_${line}.mjs`, import.meta.url));
    await writeFile(path, text);
    t.after(() => rm(path, { force: true }));
    const ended = await run(process.execPath, [path], { env: { ...process.env, PERDURE_URL: at.url } });
    assert.equal(ended.code, 0, `README.md line ${line}: ${ended.errors}`);
    const [, promised] = /prints (.*)$/m.exec(text) ?? [];
    if (promised) assert.equal(ended.out.trim(), promised, `README.md line ${line}`);
  }
});
