// That the document, the sources and the binary are about the same API.
import assert from "node:assert/strict";
import {readdirSync, readFileSync} from "node:fs";
import test from "node:test";
import {fileURLToPath} from "node:url";

import {Daemon} from "./daemon.mjs";
import {document, resolve, sources, validate} from "./schema.mjs";

/// "METHOD /path" of every route in the tables of api_*.cc.
function routesOfSources() {
  const routes = [];
  const directory = fileURLToPath(sources);
  for (const file of readdirSync(directory).filter((name) => /^api_.*\.cc$/.test(name))) {
    const text = readFileSync(directory + file, "utf8");
    // Paths that the table is made of: name = "/path", or name = another + "/path".
    const names = {};
    const path = (name, more) => (name ? names[name] : "") + (more ?? "");
    for (const [, name, base, more] of text.matchAll(/\b(one|all) = (?:(all))?(?: \+ )?(?:"([^"]+)")?[,;]/g))
      names[name] = path(base, more);
    for (const [, method, name, more] of text.matchAll(
             /\{"([A-Z]+)",\s*(?:(one|all)\b)?(?:\s*\+\s*)?(?:"([^"]+)")?,\s*Load::/g))
      routes.push(`${method} ${path(name, more)}`);
  }
  return routes.sort();
}

test("the paths of the document are exactly the routes of the sources", () => {
  const described = [];
  for (const [path, item] of Object.entries(document.paths))
    for (const method of Object.keys(item))
      if (method !== "parameters") described.push(`${method.toUpperCase()} ${path}`);
  const routes = routesOfSources();
  assert.ok(routes.length > 60, "the tables of the sources were found");
  assert.deepEqual(described.sort(), routes);
});

test("every reference of the document leads somewhere, and every schema can be checked", () => {
  const used = new Set();
  const walk = (part) => {
    if (part === null || typeof part !== "object") return;
    if (typeof part.$ref === "string") resolve(part.$ref), used.add(part.$ref);
    Object.values(part).forEach(walk);
  };
  walk(document);
  for (const [group, parts] of Object.entries(document.components))
    for (const name of Object.keys(parts))
      if (name !== "Change") assert.ok(used.has(`#/components/${group}/${name}`), `nothing refers to ${group} ${name}`);
  for (const schema of Object.values(document.components.schemas)) validate(schema, null);
});

test("every path names its parameters", () => {
  for (const [path, item] of Object.entries(document.paths)) {
    const named = (item.parameters ?? []).map((each) => resolve(each.$ref).name);
    assert.deepEqual(named, [...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]), path);
  }
});

test("the daemon serves the document", async (t) => {
  const daemon = await Daemon.start(t);
  assert.deepEqual(await daemon.expect(200, "GET", "/v1/_/openapi.json"), document);
});

test("the validator finds what is wrong", () => {
  const schema = {type: "object", required: ["a"], properties: {a: {type: "integer"}}, additionalProperties: false};
  assert.deepEqual(validate(schema, {a: 1}), []);
  assert.equal(validate(schema, {}).length, 1);
  assert.equal(validate(schema, {a: "1"}).length, 1);
  assert.equal(validate(schema, {a: 1, b: 2}).length, 1);
  assert.equal(validate({oneOf: [{type: "string"}, {type: "null"}]}, 3).length, 3);
  assert.throws(() => validate({anyOf: []}, 1));
});
