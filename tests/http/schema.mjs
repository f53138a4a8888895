// src/http/openapi.json, and whether what the daemon answers is what that document says.
//
// The validator knows the part of JSON Schema that the document uses, and throws at anything else: a keyword that it
// would ignore is a promise that nobody checks.
import {readFileSync} from "node:fs";
import {fileURLToPath} from "node:url";

export const sources = new URL("../../src/http/", import.meta.url);
export const document = JSON.parse(readFileSync(fileURLToPath(new URL("openapi.json", sources)), "utf8"));

const annotations = new Set(["description", "default"]);

/// The part of the document that "#/a/b" names.
export function resolve(ref) {
  let at = document;
  for (const part of ref.slice(2).split("/")) at = at?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
  if (at === undefined) throw new Error(`the document has no ${ref}`);
  return at;
}

const follow = (part) => (part?.$ref ? resolve(part.$ref) : part);

function isOfType(type, value) {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return value !== null && typeof value === "object" && !Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
    case "string":
    case "boolean":
      return typeof value === type;
    default:
      throw new Error(`unknown type ${type}`);
  }
}

const isTime = (text) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text) && !isNaN(Date.parse(text));

/// One function per keyword: (its value, the value to check, where, the whole schema) gives a list of what is wrong.
const keywords = {
  $ref: (ref, value, at) => validate(resolve(ref), value, at),
  type: (type, value, at) => [type].flat().some((each) => isOfType(each, value))
      ? []
      : [`${at} is ${JSON.stringify(value)?.slice(0, 80)}, not ${type}`],
  enum: (all, value, at) => (all.includes(value) ? [] : [`${at} is ${JSON.stringify(value)}, not one of ${all}`]),
  const : (only, value, at) => (only === value ? [] : [`${at} is ${JSON.stringify(value)}, not ${only}`]),
  pattern: (pattern, value, at) => typeof value !== "string" || new RegExp(pattern, "u").test(value)
      ? []
      : [`${at} '${value}' does not match ${pattern}`],
  format: (format, value, at) => {
    if (format !== "date-time") throw new Error(`unknown format ${format}`);
    return typeof value !== "string" || isTime(value) ? [] : [`${at} '${value}' is no time`];
  },
  minLength: (least, value, at) =>
      (typeof value !== "string" || [...value].length >= least ? [] : [`${at} is too short`]),
  maxLength: (most, value, at) => (typeof value !== "string" || [...value].length <= most ? [] : [`${at} is too long`]),
  minimum: (least, value, at) => (typeof value !== "number" || value >= least ? [] : [`${at} is below ${least}`]),
  maximum: (most, value, at) => (typeof value !== "number" || value <= most ? [] : [`${at} is above ${most}`]),
  minItems: (least, value, at) => (!Array.isArray(value) || value.length >= least ? [] : [`${at} has too few items`]),
  maxItems: (most, value, at) => (!Array.isArray(value) || value.length <= most ? [] : [`${at} has too many items`]),
  items: (schema, value, at) =>
      (Array.isArray(value) ? value.flatMap((each, i) => validate(schema, each, `${at}[${i}]`)) : []),
  prefixItems: (all, value, at) =>
      Array.isArray(value) ? all.flatMap((schema, i) => validate(schema, value[i], `${at}[${i}]`)) : [],
  required: (names, value, at) => isOfType("object", value)
      ? names.filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}.${name} is missing`)
      : [],
  properties: (all, value, at) => isOfType("object", value)
      ? Object.keys(all)
            .filter((name) => Object.hasOwn(value, name))
            .flatMap((name) => validate(all[name], value[name], `${at}.${name}`))
      : [],
  additionalProperties: (rule, value, at, schema) => {
    if (!isOfType("object", value)) return [];
    const more = Object.keys(value).filter((name) => !Object.hasOwn(schema.properties ?? {}, name));
    if (rule === false) return more.map((name) => `${at}.${name} is not in the document`);
    return more.flatMap((name) => validate(rule, value[name], `${at}.${name}`));
  },
  oneOf: (all, value, at) => {
    const found = all.map((schema) => validate(schema, value, at));
    const fits = found.filter((wrong) => wrong.length === 0).length;
    return fits === 1 ? [] : [`${at} fits ${fits} of ${all.length} alternatives`, ...(fits === 0 ? found.flat() : [])];
  },
};

/// What is wrong with `value`, as texts; empty if nothing is.
export function validate(schema, value, at = "$") {
  const wrong = [];
  for (const [name, rule] of Object.entries(schema)) {
    if (annotations.has(name)) continue;
    if (!Object.hasOwn(keywords, name)) throw new Error(`the validator does not know the keyword ${name}`);
    wrong.push(...keywords[name](rule, value, at, schema));
  }
  return wrong;
}

/// The path of the document that a target is at, found as the daemon does: what is said outright goes first.
export function findPath(target) {
  const segments = target.split("?")[0].split("/");
  let best = null;
  for (const path of Object.keys(document.paths)) {
    const parts = path.split("/");
    if (parts.length !== segments.length) continue;
    let score = 0;
    const fits = parts.every((part, i) => {
      const param = part.startsWith("{");
      score = score * 2 + (param ? 0 : 1);
      return param ? segments[i] !== "" : part === decodeURIComponentOr(segments[i]);
    });
    if (fits && (!best || score > best.score)) best = {path, score};
  }
  return best?.path;
}

function decodeURIComponentOr(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function checkProblem(answer) {
  const wrong = validate(resolve("#/components/schemas/Problem"), answer.json, "problem");
  if (!answer.headers["content-type"]?.startsWith("application/problem+json"))
    wrong.push("a problem is not application/problem+json");
  if (answer.json?.status !== answer.status)
    wrong.push(`the problem says ${answer.json?.status}, and the status is ${answer.status}`);
  if ([429, 503].includes(answer.status) && !answer.headers["retry-after"])
    wrong.push(`${answer.status} without Retry-After`);
  return wrong;
}

/// What of an answer, or of a request that was taken, is not as the document says.
/// `answer` has status, headers (lower case), text, and json if it is that. `sent` is the JSON of the request.
export function checkAnswer(method, target, answer, sent) {
  const isHead = method === "HEAD";
  const path = findPath(target);
  const operation = path && document.paths[path][isHead ? "get" : method.toLowerCase()];
  const isProblem = answer.status >= 400;
  if (!operation) {
    const allowed = path ? [405] : [404];
    const wrong = isHead ? [] : checkProblem(answer);
    // Whoever is refused at the door does not learn what there is.
    if (![...allowed, 400, 403, 421].includes(answer.status))
      wrong.push(`${answer.status} for what is not in the document`);
    return wrong;
  }
  const exact = operation.responses[answer.status];
  const wrong = [];
  if (!exact) {
    const general = follow(operation.responses.default)["x-statuses"];
    if (!general.includes(answer.status)) wrong.push(`the status ${answer.status} is not in the document`);
  }
  if (isHead) return wrong;
  // Some have an answer of their own to what went wrong, and one of them that or a problem.
  const {content} = follow(exact ?? {});
  const mayBeProblem = !content?.["application/json"] ||
      (content["application/problem+json"] && !answer.headers["content-type"]?.startsWith("application/json"));
  if (isProblem && mayBeProblem) return [...wrong, ...checkProblem(answer)];
  return [...wrong, ...checkGood(operation, follow(exact ?? {}), answer, sent)];
}

function checkGood(operation, response, answer, sent) {
  const wrong = [];
  for (const name of Object.keys(response.headers ?? {}))
    if (!answer.headers[name.toLowerCase()]) wrong.push(`the header ${name} is missing`);
  const request = operation.requestBody?.content["application/json"].schema;
  if (sent !== undefined && request) wrong.push(...validate(request, sent, "the request, which was taken,"));
  if (!response.content) return answer.text === "" ? wrong : [...wrong, "there is a body, and the document has none"];
  const [[type, {schema}]] = Object.entries(response.content);
  if (!answer.headers["content-type"]?.startsWith(type))
    wrong.push(`Content-Type is ${answer.headers["content-type"]}, not ${type}`);
  if (type === "application/json") wrong.push(...validate(schema, answer.json, "answer"));
  return wrong;
}
