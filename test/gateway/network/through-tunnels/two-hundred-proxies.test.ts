import { readdirSync, readFileSync } from 'node:fs';
import { expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '#store';
import { startChatLoad, type CallOutcome } from '../../../support/chat-load.ts';
import { freshDatabase } from '../../../support/fresh-database.ts';
import { startGateway, type Gateway } from '../../../support/gateway.ts';
import { offeredModel } from '../../../support/dial-in.ts';
import { fleetWallet } from '../../../support/fleet-wallet.ts';
import { seededRandom } from '../../../support/provider/random.ts';
import type { LoggedCall } from '../../../support/provider/log.ts';
import { startProvider } from '../../../support/provider.ts';
import { startFleet, type ProxyFleet } from '../../../support/proxy-fleet.ts';
import { until } from '../../../support/tunnel-spine.ts';
import { DOMAIN, SIGN_IN_TOML } from '../../../support/wallets.ts';
import { atThisLoad } from '../../../support/at-this-load.ts';

/*
 * Two hundred proxies that connect, are killed, drained and started again at random, while the gateway that they
 * dial is stopped and killed and started again, under load. Whatever a consumer saw is held against what the
 * upstream wrote down and what the database keeps.
 */

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const SEED = 20_260_728;
const PROXIES = 200;
const PROCESSES = 3;
const CLIENTS = 16;
const PAUSE_MS = 500;
const MODEL = 'flap/model';
const ownModel = (index: number | string) => `own-${index}/model`;
const MAX_TOKENS = 40;
/** Signals to the gateway, and for how long there is flapping before each. */
const RESTARTS: readonly ('SIGKILL' | 'SIGTERM')[] = DEEP
  ? Array.from({ length: 12 }, (_, turn) => (turn % 3 === 1 ? 'SIGTERM' : 'SIGKILL'))
  : ['SIGKILL', 'SIGTERM'];
const FLAP_MS = DEEP ? 10_000 : 2_000;
const FLAP_EVERY_MS = 60;
/** From the gateway's readiness to that of all proxies: the longest pause between two dials is 15 s. */
const BACK_MS_MAX = 20_000;

const TOML = `
${SIGN_IN_TOML}
[limits]
requests_per_minute = 10000000
burst = 10000000
client_stall_ms = 2000
drain_on_shutdown_ms = 5000
[billing]
drain_ms = 1000
sweep_ms = 1000
[tunnel]
wait_ms = 1500
[upstream]
call_timeout_ms = 10000
`;

interface LockRow {
  readonly id: string;
  readonly state: string;
  readonly charged: number;
  readonly provider: string | null;
  /** Of a call that was settled. */
  readonly attempts: number;
}

interface Books {
  readonly locks: ReadonlyMap<string, readonly LockRow[]>;
  readonly registrations: readonly { readonly provider: string; readonly revision: number }[];
  readonly connections: readonly { readonly provider: string; readonly epoch: number; readonly left: boolean }[];
}

async function readBooks(where: { readonly url: string | undefined; readonly dataDir: string }): Promise<Books> {
  const database = await openDatabase(where);
  try {
    const locks = await database.query({
      name: 'fleet/locks',
      text: 'SELECT id, state, charged, provider, lock_detail, detail FROM locks',
    });
    const registrations = await database.query({
      name: 'fleet/registrations',
      text: 'SELECT provider, revision FROM provider_registrations',
    });
    const connections = await database.query({
      name: 'fleet/connections',
      text: 'SELECT provider, epoch, left_at FROM provider_connections',
    });
    return {
      locks: Map.groupBy(
        locks.map((row) => ({
          id: (JSON.parse(String(row['lock_detail'])) as { requestId: string }).requestId,
          state: String(row['state']),
          charged: Number(row['charged']),
          provider: row['provider'] as string | null,
          attempts: (JSON.parse((row['detail'] as string | null) ?? '{}') as { attempts?: number }).attempts ?? 0,
        })),
        ({ id }) => id,
      ),
      registrations: registrations.map((row) => ({
        provider: String(row['provider']),
        revision: Number(row['revision']),
      })),
      connections: connections.map((row) => ({
        provider: String(row['provider']),
        epoch: Number(row['epoch']),
        left: row['left_at'] !== null,
      })),
    };
  } finally {
    await database.close();
  }
}

/**
 * Kills and drains proxies at random, some of those that serve a call right now, and starts them again, until it is
 * told to stop. Returns with how many, once all are started again.
 */
function flap(fleet: ProxyFleet, random: () => number, busy: () => readonly number[]): { stop(): Promise<number> } {
  let stopping = false;
  let count = 0;
  const returns: Promise<void>[] = [];
  const running = (async () => {
    while (!stopping) {
      await new Promise((resolve) => setTimeout(resolve, random() * 2 * FLAP_EVERY_MS));
      const serving = random() < 0.3 ? busy() : [];
      const index =
        serving.length > 0 ? serving[Math.floor(random() * serving.length)]! : Math.floor(random() * fleet.size);
      if (!fleet.isReady(index)) continue;
      if (random() < 0.3) fleet.drain(index);
      else fleet.kill(index);
      count += 1;
      returns.push(
        new Promise((resolve) => {
          setTimeout(() => {
            fleet.start(index);
            resolve();
          }, random() * 700);
        }),
      );
    }
    await Promise.all(returns);
  })();
  return {
    async stop() {
      stopping = true;
      await running;
      return count;
    },
  };
}

/** The most of these times that lie within `ms` of each other. */
function mostWithin(times: readonly number[], ms: number): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = 0;
  for (let from = 0, to = 0; to < sorted.length; to++) {
    while (sorted[to]! - sorted[from]! >= ms) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

const socketsOf = ({ pid }: Gateway) => readdirSync(`/proc/${pid}/fd`).length;
const megabytesOf = ({ pid }: Gateway) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

async function gauge({ baseUrl, adminKey }: Gateway, name: string): Promise<number> {
  const text = await (await fetch(`${baseUrl}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })).text();
  return text
    .split('\n')
    .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

interface Provider {
  readonly id: string;
  readonly services: number;
  readonly listings: readonly { readonly name: string; readonly status: string }[];
}

/** Begins the ids of requests that are not of the load. */
const CHECK = 'check-';

async function statusOfChat({ baseUrl }: Gateway, key: string, model: string): Promise<number> {
  const response = await fetch(`${baseUrl}/api/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-request-id': `${CHECK}${model}` },
    body: JSON.stringify({ model, max_tokens: MAX_TOKENS, messages: [{ role: 'user', content: '!tokens:2' }] }),
  });
  await response.text();
  return response.status;
}

async function listing<T>({ baseUrl }: Gateway, path: string): Promise<T> {
  return ((await (await fetch(`${baseUrl}/api/v1${path}`)).json()) as { data: T }).data;
}

for (const engine of DEEP ? (['embedded', 'postgres'] as const) : (['embedded'] as const))
  test(
    `${PROXIES} proxies flap while the gateway restarts (${engine} database)`,
    { timeout: DEEP ? 1_800_000 : 120_000 },
    // oxlint-disable-next-line complexity -- one scenario from begin to end
    async () => {
      const random = seededRandom(SEED);
      const begunAt = Date.now();
      const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
      if (database) onTestFinished(() => database.drop());
      const upstream = await startProvider();
      onTestFinished(() => upstream.stop());
      const gateway = await startGateway({ toml: TOML, ...(database ? { databaseUrl: database.url } : {}) });
      onTestFinished(() => gateway.stop());
      const services = [MODEL, ownModel('{index}')]
        .map((name) => offeredModel({ url: upstream.url, name, provider: 'Fleet {index}' }))
        .join('');
      const fleet = await startFleet({
        router: gateway.baseUrl,
        domain: DOMAIN,
        seed: SEED,
        services,
        size: PROXIES,
        processes: PROCESSES,
      });
      onTestFinished(() => fleet.stop());
      const ids = Array.from({ length: PROXIES }, (_, index) => fleetWallet(SEED, index).providerId);
      /** Of an upstream's request. */
      const indexOf = ({ body }: LoggedCall) =>
        Number((body as { model: string }).model.slice('upstream-of-Fleet '.length));
      const busy = () =>
        upstream.log
          .slice(-3 * CLIENTS)
          .filter(({ end }) => end === null)
          .map(indexOf);
      const { key, account } = await gateway.openAccount('fleet', 1_000);

      for (let index = 0; index < PROXIES; index++) fleet.start(index);
      const firstMs = await fleet.allReady(60_000);

      const load = startChatLoad({
        url: () => gateway.baseUrl,
        key,
        clients: CLIENTS,
        pauseMs: PAUSE_MS,
        prefix: `fleet-${engine}`,
        random,
        next() {
          const index = Math.floor(random() * PROXIES);
          const draw = random();
          const model = draw < 0.6 ? MODEL : draw < 0.8 ? `${ids[index]}:${MODEL}` : ownModel(index);
          const slow =
            random() < 0.4
              ? ` !token-ms:${5 + Math.floor(random() * 40)}`
              : random() < 0.5
                ? ` !head-delay:${Math.floor(random() * 400)}`
                : '';
          return {
            model,
            stream: random() < 0.5,
            content: `!tokens:${1 + Math.floor(random() * 20)}${slow}`,
            maxTokens: MAX_TOKENS,
          };
        },
      });
      onTestFinished(() => load.stop());

      /** From the first proxy that was ready to the signal: the gateway was up and could serve. */
      const steady: { readonly from: number; readonly to: number }[] = [];
      const backMs: number[] = [];
      const peaks: number[] = [];
      let steadyFrom = Date.now();
      let flaps = 0;
      const flapFor = async (ms: number) => {
        const flapping = flap(fleet, random, busy);
        await new Promise((resolve) => setTimeout(resolve, ms));
        flaps += await flapping.stop();
      };

      for (const [turn, signal] of RESTARTS.entries()) {
        await flapFor(FLAP_MS);
        steady.push({ from: steadyFrom, to: Date.now() });
        // Some are away when the gateway goes.
        const away = flap(fleet, random, busy);
        await (signal === 'SIGKILL' ? gateway.kill9() : gateway.term());
        const downAt = Date.now();
        await gateway.restart();
        const upAt = Date.now();
        await until(() => fleet.readies.some(({ at }) => at >= downAt), 30_000);
        steadyFrom = Date.now();
        flaps += await away.stop();
        // It may go again before all are back, but for the last time.
        const enough = turn + 1 < RESTARTS.length ? PROXIES * 0.8 : PROXIES;
        await until(() => fleet.ready() >= enough, BACK_MS_MAX + 10_000);
        backMs.push(Date.now() - upAt);
        peaks.push(
          mostWithin(
            fleet.dials.filter((at) => at >= upAt),
            100,
          ),
        );
      }

      // The last life of the gateway: what it holds with all proxies there, before and after they have flapped.
      await until(async () => (await gauge(gateway, 'tollgate_tunnels')) === PROXIES);
      const before = { sockets: socketsOf(gateway), megabytes: megabytesOf(gateway) };
      await flapFor(FLAP_MS);
      steady.push({ from: steadyFrom, to: Date.now() });
      // A third of the market at once.
      await fleet.killProcess(0);
      const againMs = await fleet.allReady(30_000);
      await load.stop();
      await until(
        async () =>
          (await gauge(gateway, 'tollgate_tunnel_streams')) === 0 &&
          (await gauge(gateway, 'tollgate_calls_in_flight')) === 0,
      );
      await until(async () => (await gauge(gateway, 'tollgate_tunnels')) === PROXIES);
      await until(() => socketsOf(gateway) <= before.sockets + CLIENTS);
      const megabytes = megabytesOf(gateway);
      expect(fleet.failures).toEqual([]);

      // The catalogue.
      const providers = await listing<Provider[]>(gateway, '/providers');
      expect(providers.map(({ id }) => id).sort()).toEqual(ids.toSorted());
      // A service whose last call failed, as its proxy left, is failing until its next one. None is away or rests.
      const { key: other } = await gateway.openAccount('other', 1);
      for (const { id, listings } of providers)
        for (const { name, status } of listings)
          if (status === 'failing') expect(await statusOfChat(gateway, other, `${id}:${name}`), name).toBe(200);
      const after = await listing<Provider[]>(gateway, '/providers');
      const statuses = Map.groupBy(
        after.flatMap(({ listings }) => listings),
        ({ status }) => status,
      );
      expect((statuses.get('healthy')?.length ?? 0) + (statuses.get('untried')?.length ?? 0)).toBe(PROXIES * 2);
      expect(providers.every(({ services }) => services === 2)).toBe(true);
      const { endpoints } = await listing<{ endpoints: { provider_id: string; health: string }[] }>(
        gateway,
        `/models/${MODEL}/endpoints`,
      );
      expect(endpoints.map(({ provider_id: id }) => id).sort()).toEqual(ids.toSorted());

      // Money.
      await until(async () => (await gauge(gateway, 'tollgate_locks_held')) === 0, 120_000);
      const { data: audit } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
      expect(audit.checks.filter(({ ok }) => !ok)).toEqual([]);
      const { data: consumer } = (await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as {
        data: { locked_micro_usdc: number; balance_micro_usdc: number };
      };
      expect(consumer.locked_micro_usdc).toBe(0);
      await gateway.term();
      const books = await readBooks({ url: database?.url, dataDir: gateway.dataDir });

      const produced = new Map<string, Map<string, number>>();
      for (const logged of upstream.log) {
        if (logged.end !== 'finished') continue;
        const id = String(logged.headers['x-request-id']);
        const provider = ids[indexOf(logged)]!;
        produced.set(
          id,
          (produced.get(id) ?? new Map<string, number>()).set(provider, logged.promptTokens + 2 * logged.plannedTokens),
        );
      }
      const wrong: unknown[] = [];
      const outcomes = new Map(load.outcomes.map((outcome) => [outcome.id, outcome]));
      let charged = 0;
      for (const [id, rows] of books.locks) {
        if (id.startsWith(CHECK)) continue;
        const [row] = rows;
        const outcome = outcomes.get(id);
        if (rows.length !== 1 || !row || !outcome) {
          wrong.push({ id, rows, why: 'not one lock for one call' });
          continue;
        }
        charged += row.charged;
        if (row.state === 'held') wrong.push({ id, row, why: 'a lock is left' });
        if (row.state === 'settled' ? row.charged !== produced.get(id)?.get(row.provider ?? '') : row.charged !== 0)
          wrong.push({
            id,
            row,
            outcome,
            produced: [...(produced.get(id) ?? [])],
            why: 'the charge is not what was produced',
          });
        if (outcome.end === 'complete' && (row.state !== 'settled' || row.charged !== Math.round(outcome.cost! * 1e6)))
          wrong.push({ id, row, outcome, why: 'a complete reply is not settled at what it said' });
        // A reply may be settled and its end not be delivered, where the gateway was killed between the two. An
        // error that it gave is free.
        if ((outcome.end === 'refused' || /"error":\{/.test(outcome.detail)) && row.charged !== 0)
          wrong.push({ id, row, outcome, why: 'a call that failed was charged' });
      }
      for (const outcome of load.outcomes)
        if (outcome.end === 'complete' && !books.locks.has(outcome.id)) wrong.push({ outcome, why: 'no lock' });
      expect(wrong.slice(0, 5)).toEqual([]);
      expect(1_000_000_000 - consumer.balance_micro_usdc).toBe(charged);

      // No call was lost that had not begun, as long as there was somebody to serve it.
      const within = ({ startedAt, endedAt }: CallOutcome) =>
        steady.some(({ from, to }) => startedAt >= from && endedAt <= to);
      const calm = load.outcomes.filter(within);
      const routed = calm.filter(({ model }) => model === MODEL);
      // Those are left of which one provider after the other vanished: a call is tried at three at most.
      const lost = routed.filter(({ stream, end, begun }) => end !== 'complete' && !(stream && begun));
      const tried = (id: string) =>
        new Set(upstream.log.filter(({ headers }) => headers['x-request-id'] === id).map(indexOf)).size;
      expect(lost.filter(({ id }) => tried(id) < 2)).toEqual([]);
      expect(lost.length).toBeLessThan(3 + routed.length / 100);
      const failedOver = routed.filter(({ id, end }) => end === 'complete' && books.locks.get(id)![0]!.attempts > 1);
      expect(failedOver.length).toBeGreaterThan(0);
      const refused = load.outcomes.filter(({ end }) => end === 'refused');
      expect(refused.filter(({ status }) => status !== 500 && status !== 503).slice(0, 5)).toEqual([]);
      expect(calm.filter(({ end }) => end === 'lost').slice(0, 5)).toEqual([]);

      // Registered once, whatever happened since.
      expect(books.registrations.map(({ provider }) => provider).sort()).toEqual(ids.toSorted());
      expect(books.registrations.filter(({ revision }) => revision !== 1)).toEqual([]);
      expect(books.connections.map(({ provider }) => provider).sort()).toEqual(ids.toSorted());
      const joins = books.connections.reduce((sum, { epoch }) => sum + epoch, 0);
      expect(joins).toBeGreaterThanOrEqual(fleet.readies.length);
      expect(joins).toBeLessThanOrEqual(fleet.dials.length);

      // They came back in time, and not all at once.
      expect(Math.max(...backMs)).toBeLessThan(atThisLoad(BACK_MS_MAX));
      // Without jitter half of them and more come within one such time.
      expect(Math.max(...peaks)).toBeLessThan(PROXIES * 0.3);
      expect(megabytes - before.megabytes).toBeLessThan(100);

      const count = (end: CallOutcome['end']) => load.outcomes.filter((outcome) => outcome.end === end).length;
      console.log(
        [
          `  ${load.outcomes.length} calls in ${Math.round((Date.now() - begunAt) / 1000)} s: ${count('complete')} complete, ${count('broken')} broken, ${count('refused')} refused, ${count('lost')} lost; ${charged} micro-USD charged`,
          `  ${flaps} flaps, ${fleet.dials.length} dials, ${fleet.readies.length} times ready; first all ready in ${Math.round(firstMs)} ms, a third killed: ${Math.round(againMs)} ms`,
          `  restarts: back after ${backMs.map(Math.round).join(', ')} ms, most dials within 100 ms ${peaks.join(', ')}`,
          `  ${routed.length} routed calls while all was up, ${routed.filter(({ end }) => end === 'broken').length} of them broken after they had begun, ${failedOver.length} failed over, ${lost.length} lost to three failures`,
          `  gateway: ${before.sockets} descriptors and ${Math.round(before.megabytes)} MiB before the last flapping, ${Math.round(megabytes)} MiB after`,
        ].join('\n'),
      );
    },
  );
