// Imported before a gateway (NODE_OPTIONS): it kills itself (SIGKILL) at a step of its sources, once, when the file
// that DIES_AT names has the name of the step. STEPS: a JSON object of steps, with the file and the text behind which
// each is.
import { readFileSync, unlinkSync } from 'node:fs';
import { registerHooks } from 'node:module';

const { STEPS, DIES_AT } = process.env;
const steps = Object.entries(JSON.parse(STEPS));

globalThis.diesAt = (step) => {
  let named;
  try {
    named = readFileSync(DIES_AT, 'utf8');
  } catch {
    return;
  }
  if (named !== step) return;
  unlinkSync(DIES_AT);
  process.kill(process.pid, 'SIGKILL');
};

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    const own = steps.filter(([, { file }]) => url.endsWith(`/${file}`));
    if (own.length === 0) return loaded;
    let source = String(loaded.source);
    for (const [step, { behind }] of own) {
      const parts = source.split(behind);
      if (parts.length !== 2) throw new Error(`${url} has ${parts.length - 1} times the text of the step ${step}`);
      source = parts.join(`${behind} globalThis.diesAt(${JSON.stringify(step)});`);
    }
    return { ...loaded, source };
  },
});
