import { expect, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startPostgres } from '../../support/postgres.ts';
import { UNHURRIED } from '../../support/spine.ts';
import { until } from '../../support/tunnel-spine.ts';
import { TERMINAL } from '../contract/shapes.ts';
import { createTalk, type Reply, type ProviderStream } from '../contract/client-calls.ts';
import { callOf } from './support/money-of-calls.ts';
import { startQuickAgent } from './support/quick-agent.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// PostgreSQL goes away while clients send, listen, ask and cancel, and agents work: clients get clean errors, tasks
// are settled when it is back.

const PRICE = 1_000n;
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const CLIENTS = DEEP ? 10 : 6;
/** Tasks that a client is told of before a restart, and as many after it as two thirds of these. */
const TOLD = DEEP ? 60 : 24;
const SETTLED_MS_MAX = 20_000;
const LIVE = { name: 'test/live-tasks', text: 'SELECT task_id FROM tasks WHERE ended_at IS NULL' };
const HELD = {
  name: 'test/held-of-tasks',
  text: "SELECT l.id FROM locks l JOIN task_calls c ON c.call_id = l.id WHERE l.state = 'held'",
};
const CHARGES = {
  name: 'test/charges-of-tasks',
  text: 'SELECT c.task_id AS task, l.state AS state, l.charged AS charged FROM task_calls c JOIN locks l ON l.id = c.call_id',
};

const postgres = ofFile(startPostgres, (one) => one.stop());
const agent = ofFile(startQuickAgent, (one) => one.close());
const spine = spineOfFile(() => ({
  databaseUrl: postgres.url,
  toml: `${UNHURRIED}\n[tasks]\nlook_ms_max = 1000\n${agentBlock({ name: 'quick/agent', endpoint: agent.url })}`,
}));

const IN_STREAM = 'in a stream';

interface Seen {
  /** Tasks that a client was told of. */
  readonly told: Set<string>;
  readonly ended: { readonly id: string; readonly charged: number | null }[];
  readonly failures: { readonly text: string; readonly retryAfter: string | null }[];
}

async function load(talk: ProviderStream, index: number, seen: Seen, stopped: () => boolean): Promise<void> {
  let last: string | null = null;
  const fails = ({ text, headers }: Reply) => seen.failures.push({ text, retryAfter: headers.get('retry-after') });
  for (let turn = 0; !stopped(); turn += 1) {
    const text = `${turn % 5 === 0 ? 'fail' : 'slow'} ${(turn * 13 + index * 7) % 300}`;
    if (turn % 3 === 0) {
      const reply = await talk.sent(text, { immediately: true });
      if (reply.error) fails(reply);
      else seen.told.add((last = (reply.result() as { task: { id: string } }).task.id));
    } else if (turn % 3 === 1) {
      const opened = await talk.open('SendStreamingMessage', {
        message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] },
      });
      if (!('next' in opened)) fails(opened);
      else
        try {
          for (let event = await opened.next(); event; event = await opened.next()) {
            if (event.type === 'task') seen.told.add((last = event.id));
            if (event.type === 'status' && TERMINAL.includes(event.state)) seen.ended.push(callOf(event));
          }
        } catch (error) {
          seen.failures.push({ text: String(error), retryAfter: IN_STREAM });
        }
    } else if (last !== null) {
      const reply = await talk.call(turn % 6 === 2 ? 'CancelTask' : 'GetTask', { id: last });
      // A task may be over before it is canceled.
      if (reply.error && reply.error.code !== -32_002) fails(reply);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** By day as a crash; the orderly restart is the cluster's by day (../../cluster/database-restarts). */
const MODES = DEEP ? (['immediate', 'fast'] as const) : (['immediate'] as const);

test.each(MODES)('a restart (%s) under load', async (mode) => {
  const seen: Seen = { told: new Set(), ended: [], failures: [] };
  const before = await spine.balance();
  let stopped = false;
  const talk = createTalk(
    { url: `${spine.origin}/a2a/quick/agent`, headers: { authorization: `Bearer ${spine.key}` } },
    '1.0',
    'JSONRPC',
  );
  const clients = Array.from({ length: CLIENTS }, (_, index) => load(talk, index, seen, () => stopped));
  await until(() => seen.ended.length > TOLD / 3 && seen.told.size > TOLD);
  await postgres.restart(mode);
  const { size } = seen.told;
  await until(() => seen.told.size > size + (TOLD * 2) / 3);
  stopped = true;
  await Promise.all(clients);

  for (const { text, retryAfter } of seen.failures) {
    expect(text).toContain('"code":-32018');
    // In a stream that has begun there is no header any more.
    if (retryAfter !== IN_STREAM) expect([text, Number(retryAfter) >= 1]).toEqual([text, true]);
    expect(text).not.toMatch(/postgres|:5432|ECONN|127\.0|SELECT|terminating/i);
  }
  const settledMs = await until(
    async () =>
      (await spine.app.database.query(LIVE)).length === 0 && (await spine.app.database.query(HELD)).length === 0,
    SETTLED_MS_MAX,
  );
  const wrong: unknown[] = [];
  const charges = new Map((await spine.app.database.query(CHARGES)).map((row) => [String(row['task']), row]));
  for (const id of seen.told) {
    const due = agent.tasks.get(id)!.state === 'completed' ? PRICE : 0n;
    const row = charges.get(id);
    if (row?.['state'] !== 'settled' || row['charged'] !== due) wrong.push({ id, due, row });
  }
  expect(wrong.slice(0, 5)).toEqual([]);
  for (const { id, charged } of seen.ended) expect((await spine.generation(id)).cost_micro_usdc).toBe(charged);
  // Calls whose answer was lost before they came to a task hold their locks until these expire, which no clock of
  // this test waits for.
  await spine.app.ledger.expire(Date.now() + 86_400_000);
  expect(await spine.faults()).toEqual([]);
  const paid = before.available - (await spine.balance()).available;
  const completed = [...agent.tasks.values()].filter(({ state }) => state === 'completed').length;
  expect(paid).toBeLessThanOrEqual(BigInt(completed) * PRICE);
  console.log(
    `  ${mode}: ${agent.tasks.size} tasks, ${seen.told.size} told, ${seen.failures.length} failures; ${completed} completed, ${paid / PRICE} paid; all settled ${Math.round(settledMs)} ms after the last`,
  );
  agent.forget();
});
