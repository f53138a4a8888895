// Breaks the code on purpose, one break at a time, and sees to it that a test fails for each: ./dev mutants
//
// A break is a block of a *.mutants file beside this one:
//
//   IDS | FILE | TEST PROGRAM | GTEST FILTER
//   - the lines to take out, which occur once in FILE
//   + the lines to put in their place
//
// A line "= WORK-1..29 WORK-U1..15" says that each of these ids has a break, in whichever file. With --check nothing is
// built: that is checked, and that each break still has a place in its file.
//
// It happens in a copy of the sources in build/mutants, never in the sources themselves.
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const here = dirname(new URL(import.meta.url).pathname);
const root = join(here, "../..");
const tree = join(root, "build/mutants");
const timeoutMs = Number(process.env.PERDURE_MUTANT_SECONDS ?? 120) * 1000;

function* idsOf(text) {
  for (const part of text.split(/[ ,]+/).filter(Boolean)) {
    const [, stem, first, last] = /^(.*?)(\d+)(?:\.\.(\d+))?$/.exec(part);
    for (let i = Number(first); i <= Number(last ?? first); ++i) yield `${stem}${i}`;
  }
}

// Ids that must have a break.
const wantedIds = new Set();

function parse(name) {
  const mutants = [];
  let mutant = null;
  for (const [index, line] of readFileSync(join(here, name), "utf8").split("\n").entries()) {
    const where = `${name}:${index + 1}`;
    if (line.startsWith("#") || line.trim() === "") continue;
    if (line.startsWith("= ")) {
      for (const id of idsOf(line.slice(2))) wantedIds.add(id);
      continue;
    }
    if (/^[-+]( |$)/.test(line)) {
      if (!mutant) throw new Error(`${where}: a line of a break stands before its header`);
      (line[0] === "-" ? mutant.before : mutant.after).push(line.slice(2));
      continue;
    }
    const parts = line.split("|").map((part) => part.trim());
    if (parts.length !== 4) throw new Error(`${where}: want IDS | FILE | TEST PROGRAM | GTEST FILTER`);
    mutant = { where, ids: parts[0], file: parts[1], program: parts[2], filter: parts[3], before: [], after: [] };
    mutants.push(mutant);
  }
  return mutants;
}

// Copies what is new or changed, and takes away what is gone, so that the copy is built anew only where it must be.
function copySources() {
  const list = (cwd, ...options) =>
    execFileSync("git", ["ls-files", "-z", ...options], { cwd, encoding: "utf8", maxBuffer: 1 << 26 }).split("\0").filter(Boolean);
  const files = new Set(list(root, "--cached", "--others", "--exclude-standard").filter((file) => existsSync(join(root, file))));
  mkdirSync(tree, { recursive: true });
  if (!existsSync(join(tree, ".git"))) execFileSync("git", ["init", "-q", tree]);
  for (const file of list(tree, "--others", "--exclude-standard")) if (!files.has(file)) rmSync(join(tree, file));
  for (const file of files) {
    const [from, to] = [join(root, file), join(tree, file)];
    if (!statSync(from).isFile()) continue;
    if (existsSync(to) && readFileSync(to).equals(readFileSync(from))) continue;
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(from, to);
  }
}

function broken(mutant) {
  const text = readFileSync(join(root, mutant.file), "utf8");
  const before = mutant.before.join("\n");
  const count = text.split(before).length - 1;
  if (before === "" || count !== 1) throw new Error(`${mutant.where}: its text occurs ${count} times in ${mutant.file}; it must occur once`);
  return text.replace(before, () => mutant.after.join("\n"));
}

function build(programs) {
  const environment = { ...process.env, CXX: process.env.CXX ?? "g++", CCACHE_BASEDIR: tree, CCACHE_NOHASHDIR: "1" };
  const options = { cwd: tree, encoding: "utf8", env: environment, maxBuffer: 1 << 26 };
  if (!existsSync(join(tree, "build/dev/build.ninja"))) {
    const configured = spawnSync("cmake", ["--preset", "dev"], options);
    if (configured.status !== 0) throw new Error(configured.stdout + configured.stderr);
  }
  return spawnSync("cmake", ["--build", "build/dev", "--target", ...programs], options);
}

const binaries = new Map();
function binary(program) {
  if (!binaries.has(program)) {
    const found = execFileSync("find", [join(tree, "build/dev"), "-type", "f", "-executable", "-name", program], { encoding: "utf8" });
    binaries.set(program, found.split("\n")[0]);
  }
  return binaries.get(program);
}

function run(program, filter) {
  const options = { cwd: dirname(binary(program)), encoding: "utf8", timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: 1 << 28 };
  const result = spawnSync(binary(program), [`--gtest_filter=${filter}`, "--gtest_brief=1", "--gtest_fail_fast"], options);
  const ran = Number(/Running (\d+) test|^\[==========\] (\d+) test/m.exec(result.stdout)?.slice(1).find(Boolean) ?? 0);
  return { passed: result.status === 0, ran, output: result.stdout + result.stderr };
}

// The name of the first test that failed, or how the program ended.
function reason(output) {
  return /\[  FAILED  \] ([\w./]+)/.exec(output)?.[1] ?? "the program ended or hung";
}

// What is wrong with the breaks themselves, a line each.
function check(mutants) {
  const problems = [];
  for (const mutant of mutants) {
    try {
      if (broken(mutant) === readFileSync(join(root, mutant.file), "utf8")) problems.push(`${mutant.where}: it breaks nothing`);
    } catch (error) {
      problems.push(error.message);
    }
    for (const id of idsOf(mutant.ids)) wantedIds.delete(id);
  }
  return problems.concat([...wantedIds].map((id) => `${id} has no break`));
}

function main(wanted) {
  if (wanted[0] === "--check") {
    const problems = check(readdirSync(here).filter((name) => name.endsWith(".mutants")).flatMap(parse));
    if (problems.length > 0) throw new Error(problems.join("\n"));
    return;
  }
  const files = readdirSync(here).filter((name) => name.endsWith(".mutants"));
  const isWanted = (mutant) =>
    wanted.length === 0 || wanted.some((word) => mutant.where === word || mutant.where.startsWith(`${word}.mutants:`) || mutant.ids.split(/[ ,]+/).includes(word));
  const mutants = files.sort().flatMap(parse).filter(isWanted);
  if (mutants.length === 0) throw new Error(`no break has one of these as its file, place or id: ${wanted.join(" ")}`);
  mutants.forEach(broken);

  copySources();
  const programs = [...new Set(mutants.map((mutant) => mutant.program))];
  console.log(`==> building ${programs.join(" ")}`);
  const built = build(programs);
  if (built.status !== 0) throw new Error(built.stdout + built.stderr);
  for (const pair of new Set(mutants.map((mutant) => `${mutant.program} ${mutant.filter}`))) {
    const [program, filter] = pair.split(" ");
    const result = run(program, filter);
    if (!result.passed) throw new Error(`${pair} fails before anything is broken:\n${result.output}`);
    if (result.ran === 0) throw new Error(`${pair} runs no test`);
  }

  let caught = 0;
  const restore = (mutant) => copyFileSync(join(root, mutant.file), join(tree, mutant.file));
  for (const [index, mutant] of mutants.entries()) {
    writeFileSync(join(tree, mutant.file), broken(mutant));
    const built = build([mutant.program]);
    let verdict = "DOES NOT BUILD";
    if (built.status === 0) {
      const result = run(mutant.program, mutant.filter);
      verdict = result.passed ? "SURVIVED" : `caught by ${reason(result.output)}`;
      if (!result.passed) ++caught;
    }
    console.log(`[${index + 1}/${mutants.length}] ${mutant.where} ${mutant.ids}: ${verdict}`);
    if (built.status !== 0) console.log(built.stdout.split("\n").filter((line) => /error/.test(line)).slice(0, 5).join("\n"));
    restore(mutant);
  }
  console.log(`${caught} of ${mutants.length} breaks caught`);
  process.exitCode = caught === mutants.length ? 0 : 1;
}

try {
  main(process.argv.slice(2));
} catch (error) {
  console.error(`mutants: ${error.message}`);
  process.exitCode = 1;
}
