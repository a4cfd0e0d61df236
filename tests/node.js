// Answers tests/node.py: a line of JSON for each, { load: url }, { run: script } or { call: function, argument }.

import { createInterface } from "node:readline";
import { runInThisContext } from "node:vm";

/** @param {{ load?: string, run?: string, call?: string, argument?: unknown }} request */
async function answer({ load, run, call, argument }) {
  if (load) Object.assign(globalThis, await import(load));
  else if (run) runInThisContext(run);
  else return { result: await runInThisContext(`(${call})`)(argument) };
  return {};
}

Object.assign(globalThis, { window: globalThis });
for await (const line of createInterface({ input: process.stdin })) {
  const told = await answer(JSON.parse(line)).catch((error) => ({ error: String(error.message ?? error) }));
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
