// Opens a file as speedscope's page does, by its own importer, and prints what it has made of it as JSON: of each profile
// when it opened and closed which frame, and what all frames weigh. `speedscope.js FOLDER FILE`, FOLDER that of the package.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

// The page is one bundle, whose modules nobody else sees. Those that it loads when it needs them have an object of what
// they export, which is seen when it gets its properties. Then there is nothing to draw the page on, and it fails.
async function importer(folder) {
  const release = path.join(folder, "dist/release");
  const bundle = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
  const define = Object.defineProperty;
  let found;
  Object.defineProperty = (object, key, how) => {
    if (key === "importProfileGroupFromBase64") found = object;
    return define(object, key, how);
  };
  const nothing = { style: {}, addEventListener() {}, appendChild() {}, setAttribute() {}, getContext: () => null };
  globalThis.window = { ...nothing, location: { hash: "", protocol: "file:" }, matchMedia: () => nothing };
  globalThis.document = { ...nothing, createElement: () => nothing, body: nothing, head: nothing };
  console.log = () => {};
  try {
    vm.runInThisContext(fs.readFileSync(path.join(release, bundle), "utf8"), { filename: bundle });
  } catch (error) {
    if (!found) throw error;
  } finally {
    Object.defineProperty = define;
  }
  await new Promise(setImmediate); // by then it has loaded those modules
  return found;
}

function describe(frame) {
  return { name: frame.name, file: frame.file ?? null, line: frame.line ?? null };
}

function tell(profile) {
  const events = [];
  const frames = [];
  profile.forEachCall(
    (node, at) => events.push(["open", at, describe(node.frame)]),
    (node, at) => events.push(["close", at, describe(node.frame)]),
  );
  profile.forEachFrame((frame) =>
    frames.push({ ...describe(frame), self: frame.getSelfWeight(), total: frame.getTotalWeight() }),
  );
  return { name: profile.getName(), unit: profile.getWeightUnit(), weight: profile.getTotalWeight(), events, frames };
}

async function main(folder, file) {
  const bytes = fs.readFileSync(file).toString("base64");
  const group = await (await importer(folder)).importProfileGroupFromBase64(path.basename(file), bytes);
  const told = JSON.stringify({ name: group.name, index: group.indexToView, profiles: group.profiles.map(tell) });
  process.stdout.write(told, () => process.exit(0));
}

main(process.argv[2], process.argv[3]).catch((error) => {
  console.error(error);
  process.exit(1);
});
