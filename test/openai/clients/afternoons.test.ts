import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createKeeper } from '../../support/server-process.ts';
import { type Generation, modelBlock, startSpine, UNHURRIED } from '../../support/spine.ts';
import {
  type AfternoonModel,
  billOf,
  type Death,
  doneWith,
  type OfferOfAfternoon,
  promptOf,
  startAfternoonModel,
  type Verb,
} from './support/afternoon-model.ts';
import {
  CODING_CLIENTS,
  type CodingClient,
  CONTEXT,
  type Desk,
  nameOf,
  notesOf,
  textOf,
} from './support/coding-clients.ts';
import { type KeyHelper, signInWithHelper } from './support/key-command.ts';

// Coding agents as they are on npm, each with a session of thirty turns that outgrows the context of its model. The
// model behind the gateway is played: it dies at every tenth call before it has said anything. Some turns are
// cancelled, and keys are access tokens that expire. Nothing of all this may be seen. Each turn is a process of its own
// that resumes the session, because without a terminal a process takes one prompt; histories are shortened by the
// clients themselves, when the reported use says that the context is nearly full.

const HOUR_MS = 60 * 60_000;
const SESSION_MS = 1_200_000;
/** Far more than a turn takes. One that hangs fails by its exit code. */
const TURN_MS = 180_000;
const LIMITS = `${UNHURRIED}anonymous_requests_per_minute = 1000000\naccount_requests_per_minute = 1000000\n`;
const TURNS: readonly Verb[] = [
  ...(['say', 'read', 'write', 'read', 'errand', 'cancel', 'read', 'expire', 'write', 'say'] as const),
  ...(['read', 'read', 'errand', 'read', 'write', 'cancel', 'read', 'expire', 'read', 'write'] as const),
  ...(['read', 'errand', 'say', 'read', 'write', 'cancel', 'read', 'read', 'write', 'say'] as const),
];
const NOTES = 'A line of notes that somebody wrote.\n'.repeat(500);
const VISIBLE =
  /error|retr[iy]|fail|refused|unauthori|(?:re|dis)connect|overload|(?<![\w,.-])(?:401|50[0-4]|529)(?![\w,.-])/i;

const TWO: readonly OfferOfAfternoon[] = [
  { name: 'First', price: 1 },
  { name: 'Second', price: 2 },
];
const DEATHS: readonly Death[] = ['behind its head', 'refused', 500, 503];
/** What an only offer is asked once more after. */
const BRIEF_DEATHS: readonly Death[] = [500, 'refused', 503];

type Call = Generation & { readonly failed_attempts: readonly object[] };

test.for([
  ['Claude Code', 'two offers', TWO, DEATHS],
  ['Codex', 'two offers', TWO, DEATHS],
  ['Codex', 'an only offer', TWO.slice(0, 1), BRIEF_DEATHS],
  ['Gemini CLI', 'two offers', TWO, DEATHS],
] as const)('an afternoon of %s at %s shows no fault', { timeout: SESSION_MS }, async ([name, , offers, deaths]) => {
  const client: CodingClient = CODING_CLIENTS[name];
  const home = await mkdtemp(join(tmpdir(), 'tollgate-afternoon-'));
  const keeper = createKeeper([home]);
  const project = join(home, 'project');
  await mkdir(project);

  let ahead = 0;
  let failures = (): number => 0;
  /** Another program that refreshes at the same time as the client. */
  const others: ReturnType<KeyHelper['client']['refresh']>[] = [];
  const expire = (): void => {
    ahead += HOUR_MS;
    helper.setAhead(ahead);
    others.push(helper.client.refresh(helper.refreshToken()));
  };
  const hands = client.hands(project);
  const onExpire = client.renewsKey ? expire : () => {};
  const model = await startAfternoonModel({ offers, deaths, hands, onExpire, failures: () => failures() });
  const spine = await startSpine({
    mode: 'development',
    now: () => Date.now() + ahead,
    elapsed: () => performance.now(),
    toml: LIMITS + offers.map((offer) => blockOf(offer, model, client)).join(''),
  });
  failures = () => spine.logs.filter((line) => line.includes('attempt failed')).length;
  const helper = await signInWithHelper(spine, home, () => ahead);
  const desk: Desk = { home, project, origin: spine.origin, model: 'acme/coder', helper };
  const known = new Set(await spine.locks());
  const before = await spine.balance();
  try {
    await client.prepare(desk);
    for (const [index, verb] of TURNS.entries()) {
      const turn = index + 1;
      await writeFile(join(project, notesOf(turn)), NOTES);
      if (verb === 'expire' && !client.renewsKey) expire();
      const { file, args, env } = await client.turn(desk, promptOf(turn, verb), index === 0);
      const child = keeper.start({ file, args, cwd: project, env: { PATH: process.env['PATH'], ...env } });
      const hangs = setTimeout(() => child.signal('SIGKILL'), TURN_MS);
      if (verb === 'cancel') {
        const held = await Promise.race([once(model.events, 'held'), child.exited]);
        child.signal('SIGINT');
        await held?.[0].reached.left;
      }
      await child.exited;
      clearTimeout(hangs);
      const shown = `turn ${turn} (${verb}) showed:\n${child.output()}`;
      expect(child.signalCode, shown).not.toBe('SIGKILL');
      const cancelled = verb === 'cancel' ? client.ofCancelled : undefined;
      expect(child.output().replace(cancelled ?? '', ''), shown).not.toMatch(VISIBLE);
      if (verb === 'cancel') continue;
      expect(child.exitCode, shown).toBe(0);
      expect(child.output(), shown).toContain(doneWith(turn));
      if (verb === 'write') expect(await readFile(join(project, nameOf(turn)), 'utf8'), shown).toBe(textOf(turn));
    }
    await spine.quiet();

    const { counts } = model;
    const calls = await Promise.all(
      (await spine.locks()).filter((id) => !known.has(id)).map((id) => spine.generation(id) as Promise<Call>),
    );
    const ended = calls.filter(({ cancelled }) => !cancelled);
    expect(ended.map(billOfCall).toSorted()).toEqual(model.bills.toSorted());
    expect(counts.held).toBe(TURNS.filter((verb) => verb === 'cancel').length);
    expect(calls.length - ended.length).toBe(counts.held);
    expect(counts.errands).toBeGreaterThanOrEqual(TURNS.filter((verb) => verb === 'errand').length);
    expect(counts.compactions).toBeGreaterThan(0);
    expect(counts.longest).toBeGreaterThan(100_000);
    expect(counts.deaths).toBeGreaterThanOrEqual(deaths.length);
    expect(calls.reduce((sum, { failed_attempts: failed }) => sum + failed.length, 0)).toBe(counts.deaths);
    const paid = calls.reduce((sum, { cost_micro_usdc: cost }) => sum + BigInt(cost), 0n);
    expect(before.available - (await spine.balance()).available).toBe(paid);

    expect(new Set(helper.used()).size).toBe(others.length);
    const refreshed = await Promise.all(others);
    expect(refreshed.map(({ status }) => status)).toEqual([200, 200]);
    const key = { authorization: `Bearer ${refreshed.at(-1)!.body.access_token}` };
    expect((await spine.get('/key', key)).status).toBe(200);
    expect(await spine.faults()).toEqual([]);
  } finally {
    await keeper.close();
    await spine.stop();
    await model.stop();
  }
});

const blockOf = ({ name, price }: OfferOfAfternoon, { urls }: AfternoonModel, { wire }: CodingClient): string =>
  modelBlock({
    name: 'acme/coder',
    provider: name,
    url: urls[name]!,
    prompt: price,
    completion: 2 * price,
    contextLength: CONTEXT,
    params: `wires = ["${wire}"]`,
  });

const billOfCall = ({ provider_name: offer, tokens_prompt: prompt, tokens_completion: completion, ...call }: Call) =>
  billOf(offer!, prompt, completion, call.cost_micro_usdc);
