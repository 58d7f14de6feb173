import { Client } from 'pg';
import { expect, inject, onTestFinished, test } from 'vitest';
import { agentBlock } from '../../support/a2a-agent/index.ts';
import { startProcessCluster } from '../../support/cluster.ts';
import type { Gateway } from '../../support/gateway.ts';
import { until } from '../../support/tunnel-spine.ts';
import { TERMINAL } from '../contract/shapes.ts';
import { createTalk } from '../contract/client-calls.ts';
import { booksOf, callOf } from './support/money-of-calls.ts';
import { startQuickAgent } from './support/quick-agent.ts';

// Two gateways on one PostgreSQL. One or the other is killed at any moment of what clients do, and comes back;
// clients go on at the one that is left.

const ROUNDS = process.env['TOLLGATE_DEEP'] === '1' ? 100 : 2;
const CLIENTS = 8;
const PRICE = 1_000;
const PAUSE_MS = 15;
/** As long as the claims of a gateway that died, and a few looks. */
const SETTLED_MS_MAX = 25_000;

const TOML = `
[limits]
client_stall_ms = 500
requests_per_minute = 1000000
burst = 1000000
[upstream]
call_timeout_ms = 3000
[billing]
drain_ms = 500
sweep_ms = 200
[tasks]
look_ms_max = 1000
`;

const TASKS = `
  SELECT t.task_id, t.ended_at, t.open, c.call_id, l.state, l.charged FROM tasks t
  LEFT JOIN task_calls c ON c.primitive = t.primitive AND c.task_id = t.task_id AND c.service = t.service
  LEFT JOIN locks l ON l.id = c.call_id`;
const OPEN = `SELECT (SELECT count(*) FROM tasks WHERE ended_at IS NULL) AS live,
  (SELECT count(*) FROM locks l JOIN task_calls c ON c.call_id = l.id WHERE l.state = 'held') AS held`;
/**
 * Of calls that died with their gateway before they came to a task: they give back what they hold when their time
 * is over.
 */
const DEAD = `SELECT COALESCE(sum(amount), 0) AS amount, COALESCE(max(expires_at), 0) AS until,
  count(*) FILTER (WHERE expires_at > $1) AS late FROM locks WHERE state = 'held'`;
const CHARGED = "SELECT COALESCE(sum(charged), 0) AS charged FROM locks WHERE state = 'settled'";

/** How long a lock is kept before its task is stored. */
const KEPT_MS = 3_600_000;

interface TaskMoney {
  readonly task_id: string;
  readonly ended_at: string | null;
  readonly call_id: string | null;
  readonly state: string | null;
  readonly charged: string | null;
}

test(
  `${ROUNDS} kills of one of two gateways: no task is charged twice, and none is lost that its client was told of`,
  { timeout: 60_000 + ROUNDS * 10_000 },
  async () => {
    const agent = await startQuickAgent();
    onTestFinished(() => agent.close());
    const cluster = await startProcessCluster({
      postgresUrl: inject('postgresUrl'),
      size: 2,
      toml: TOML + agentBlock({ name: 'quick/agent', endpoint: agent.url }),
    });
    onTestFinished(() => cluster.stop());
    const [first, second] = cluster.gateways as [Gateway, Gateway];
    const owner = await first.openAccount('crash', 1000);
    const database = new Client({ connectionString: cluster.databaseUrl });
    await database.connect();
    onTestFinished(() => database.end());

    /** By task, what its client was told: of calls the id. */
    const told = new Map<string, string | null>();
    /** Calls whose end their client saw, with the cost it was told. */
    const ended: { readonly id: string; readonly charged: number | null }[] = [];
    const odd: unknown[] = [];
    let refused = 0;
    let stopped = false;

    const client = async (index: number) => {
      const talks = [first, second].map(({ baseUrl }) =>
        createTalk(
          { url: `${baseUrl}/a2a/quick/agent`, headers: { authorization: `Bearer ${owner.key}` } },
          '1.0',
          'JSONRPC',
        ),
      );
      let last: string | null = null;
      for (let turn = 0; !stopped; turn += 1) {
        const talk = talks[(index + turn) % 2]!;
        const text = `${turn % 5 === 0 ? 'fail' : 'slow'} ${(turn * 13 + index * 7) % 200}`;
        try {
          if (turn % 4 === 0) {
            const { id, metadata } = await talk.task(text, { immediately: true });
            told.set((last = id), callOf({ metadata }).id);
          } else if (turn % 4 === 1) {
            const stream = await talk.stream(text);
            for (let event = await stream.next(); event; event = await stream.next()) {
              if (event.type === 'task') told.set((last = event.id), null);
              if (event.type === 'status' && TERMINAL.includes(event.state)) ended.push(callOf(event));
            }
          } else if (turn % 4 === 2) {
            ended.push(callOf(await talk.task('done')));
          } else if (last !== null) {
            const reply = await talk.call(turn % 8 === 3 ? 'CancelTask' : 'GetTask', { id: last });
            // It may be over before it is canceled; and the answer of a gateway that is killed is none.
            if (reply.error?.code === -32001) odd.push({ lost: last, reply: reply.text });
          }
        } catch (error) {
          refused += 1;
          if (!GONE.test(reasonOf(error))) odd.push(reasonOf(error));
        }
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    };
    const clients = Array.from({ length: CLIENTS }, (_, index) => client(index));
    for (let round = 0; round < ROUNDS; round += 1) {
      const gateway = round % 2 === 0 ? first : second;
      await new Promise((resolve) => setTimeout(resolve, 100 + ((round * 37) % 250)));
      await gateway.kill9();
      await gateway.restart();
    }
    stopped = true;
    await Promise.all(clients);
    expect(odd.slice(0, 5)).toEqual([]);

    const stoppedAt = performance.now();
    await until(async () => {
      const [row] = (await database.query<{ live: string; held: string }>(OPEN)).rows;
      return row!.live === '0' && row!.held === '0';
    }, SETTLED_MS_MAX);
    const settledMs = Math.round(performance.now() - stoppedAt);

    const { rows } = await database.query<TaskMoney>(TASKS);
    const known = new Map(rows.map((row) => [row.task_id, row]));
    const wrong: unknown[] = [];
    for (const [id, call] of told) {
      const row = known.get(id);
      const due = agent.tasks.get(id)!.state === 'completed' ? PRICE : 0;
      if (row?.state !== 'settled' || Number(row.charged) !== due || (call !== null && row.call_id !== call))
        wrong.push({ told: id, due, row });
    }
    // Of the others nobody was told: they are paid, or not.
    for (const { task_id: id, charged } of rows) {
      const due = agent.tasks.get(id)!.state === 'completed' ? [0, PRICE] : [0];
      if (!due.includes(Number(charged ?? 0))) wrong.push({ undeliveredEvents: id, charged });
    }
    expect(wrong.slice(0, 5)).toEqual([]);
    const books = booksOf(first, owner);
    for (const [index, money] of (await books.calls(ended.map(({ id }) => id))).entries())
      if (money.state !== 'settled' || money.charged !== ended[index]!.charged)
        wrong.push({ ended: ended[index], money });
    expect(wrong.slice(0, 5)).toEqual([]);

    const charged = Number((await database.query<{ charged: string }>(CHARGED)).rows[0]!.charged);
    expect(charged).toBeGreaterThan(0);
    const completed = [...agent.tasks.values()].filter(({ state }) => state === 'completed').length;
    expect(charged).toBeLessThanOrEqual(completed * PRICE);
    const soon = Date.now() + 70_000;
    const [dead] = (await database.query<{ amount: string; until: string; late: string }>(DEAD, [soon])).rows;
    // A gateway that is killed after it has kept a lock and before it has stored the task leaves the lock to expire.
    expect(Number(dead!.late)).toBeLessThanOrEqual(ROUNDS);
    expect(Number(dead!.until)).toBeLessThanOrEqual(Date.now() + KEPT_MS);
    const locked = Number(dead!.amount);
    expect(locked).toBeLessThanOrEqual(ROUNDS * CLIENTS * PRICE);
    expect(await books.account()).toEqual({ locked, balance: 1_000_000_000 - charged - locked });
    // The audit also compares each settlement with the journal, so none happened twice.
    expect(await books.faults()).toEqual([]);
    console.log(
      `  ${ROUNDS} kills; ${agent.tasks.size} tasks, ${told.size} told, ${ended.length} ends seen, ${refused} refused; ${completed} completed, ${charged / PRICE} charged; all settled ${settledMs} ms after the last`,
    );
    expect(told.size).toBeGreaterThan(ROUNDS * 4);
    expect(ended.length).toBeGreaterThan(ROUNDS * 4);
  },
);

/** A connection that is refused or breaks off, and what the other gateway says meanwhile. */
const GONE = /fetch failed|terminated|other side closed|ECONN|socket|shutting down|still being answered/i;

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.message} ${error.cause instanceof Error ? error.cause.message : ''}`;
}
