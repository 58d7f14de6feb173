import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { JournalLost } from '../../../src/program/app/journal.ts';
import { makePlace } from '../cli/tollgate.ts';
import { askServer, cutOff, startAddress, startServer, startStandby } from '../../support/standby.ts';
import { ask, IDENTITY_SEED, MODEL, startSpine, type Spine } from '../../support/spine.ts';

const LACKS =
  'lacks operations that were acknowledged: bring back the database that has them, or restart the gateway, which says what is missing';
const BATCHES = 'SELECT count(*) AS n FROM journal_batches';

const chat = (spine: Spine, content: string) => spine.post('/chat/completions', ask(`${content} !tokens:2`));
const rpc = async (spine: Spine, path: string, method: string, params: object, headers = {}) => {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${spine.key}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  return { status: response.status, body: (await response.json()) as object };
};
const ready = async (spine: Spine) => {
  const response = await fetch(`${spine.origin}/health/ready`);
  return { code: response.status, ...((await response.json()) as object) };
};
const becomesReady = async (spine: Spine, status: number) => {
  await expect.poll(async () => (await ready(spine)).code, { timeout: 60_000, interval: 200 }).toBe(status);
};

/** The ledger's gauge in `/metrics`. */
async function works(spine: Spine): Promise<string | undefined> {
  const response = await fetch(`${spine.origin}/metrics`, { headers: { authorization: `Bearer ${spine.adminKey}` } });
  return /^tollgate_database_works (\d)$/m.exec(await response.text())?.[1];
}

const failedChecks = async (spine: Spine) => (await spine.app.audit()).checks.filter(({ ok }) => !ok);

test(
  'after a failover to a standby that lacks what was acknowledged, all wires refuse, readiness says why, and a restart asks',
  { timeout: 300_000 },
  async () => {
    const defer = onTestFinished;
    const place = await makePlace();
    defer(() => place.clear());
    const primary = await startServer(defer);
    const address = await startAddress(primary, defer);
    const options = { databaseUrl: address.url, dataDir: place.data };
    const spine = await startSpine(options);
    let isStopped = false;
    defer(async () => {
      if (!isStopped) await spine.stop();
    });
    const first = await chat(spine, 'first');
    expect(first.status).toBe(200);
    const standby = await startStandby(primary, false, defer);
    await spine.quiet();
    await cutOff(standby, primary);
    const lost = await chat(spine, 'lost');
    expect(lost.status).toBe(200);
    const lostId = lost.headers.get('x-generation-id');
    // A call that runs while the server changes: its lock is not on the standby either.
    const open = Promise.withResolvers<void>();
    spine.provider.hold(open.promise);
    const seen = spine.provider.log.length;
    const running = chat(spine, 'running');
    await expect.poll(() => spine.provider.log.length, { timeout: 60_000 }).toBe(seen + 1);
    // What the gateway wrote down, a second later, is what its next start compares.
    const heads = () => JSON.parse(readFileSync(join(place.data, 'journal-head.json'), 'utf8')) as object;
    const head = () => Object.values(heads())[0] as { readonly n: number };
    const { n } = await askServer<{ n: string }>(primary, 'SELECT max(n) AS n FROM journal_batches');
    await expect.poll(() => head().n, { timeout: 60_000 }).toBe(Number(n));

    const onStandby = await askServer(standby, BATCHES);
    await primary.kill9();
    await standby.promote();
    address.leadTo(standby);
    open.resolve();
    spine.provider.hold(null);
    const reached = spine.provider.log.length;
    expect((await running).status).toBe(503);
    const refusal = {
      message: expect.stringMatching(/^The ledger is not reachable at the moment: retry shortly/) as string,
    };
    const refused = await chat(spine, 'after');
    expect([refused.status, await refused.json()]).toMatchObject([503, { error: refusal }]);
    expect(refused.headers.get('retry-after')).toBe('2');
    const tool = { name: 'ask_model', arguments: { model: MODEL, prompt: 'after' } };
    expect(await rpc(spine, '/mcp', 'tools/call', tool)).toMatchObject({ body: { error: refusal } });
    const message = {
      messageId: crypto.randomUUID(),
      role: 'ROLE_USER',
      parts: [{ text: 'after' }],
      metadata: { 'tollgate/agent': `model/${MODEL}` },
    };
    const version = { 'a2a-version': '1.0' };
    expect(await rpc(spine, '/a2a', 'SendMessage', { message }, version)).toMatchObject({ body: { error: refusal } });
    expect(spine.provider.log.length).toBe(reached);

    const told = (words: string) => spine.logs.filter((line) => line.includes(words));
    // The first checks of the new primary may be too slow, or meet a connection to the old one.
    await expect
      .poll(() => ready(spine), { timeout: 60_000, interval: 200 })
      .toMatchObject({
        code: 503,
        message: `The database ${LACKS}`,
        checks: { gateway: 'ok', database: LACKS },
      });
    expect(await works(spine)).toBe('0');
    const lacking = told('the ledger takes no operations: calls are refused');
    const unwritten = told('the database cannot be written to: calls are refused');
    // Once, and once more after each time that the check did not come that far.
    expect(lacking.length).toBeGreaterThan(0);
    expect(lacking.length).toBeLessThanOrEqual(1 + unwritten.length);
    expect(lacking[0]).toMatch(/the journal of this gateway ends with group \d+, and had group \d+/);
    expect(await askServer(standby, BATCHES)).toEqual(onStandby);
    expect(await failedChecks(spine)).toMatchObject([
      { name: 'journal head', detail: expect.stringContaining('operations that were acknowledged are missing') },
    ]);

    // The old primary comes back, with all that was acknowledged: the gateway goes on by itself.
    await primary.restart();
    address.leadTo(primary);
    await becomesReady(spine, 200);
    // Connections that still lead to the standby are given up one by one, so that a check may fail once more.
    await expect.poll(() => works(spine), { timeout: 60_000, interval: 200 }).toBe('1');
    const ends = spine.logs.flatMap((line) => /calls are refused|can be written to again/.exec(line)?.[0] ?? []);
    expect(ends.at(-1)).toBe('can be written to again');
    expect(ends.filter((end, at) => end === ends.at(-1) && end === ends[at - 1])).toEqual([]);
    expect(await spine.generation(lostId)).toMatchObject({ state: 'settled' });
    expect((await chat(spine, 'again')).status).toBe(200);

    // It does not come back a second time. Every second of a gateway that refuses leaves what it wrote down as it is.
    await primary.kill9();
    address.leadTo(standby);
    expect((await chat(spine, 'after')).status).toBe(503);
    await becomesReady(spine, 503);
    isStopped = true;
    await spine.stop();
    expect(head().n).toBeGreaterThanOrEqual(Number(n));
    const start = startSpine(options);
    await expect(start).rejects.toThrow(JournalLost);
    await expect(start).rejects.toThrow(
      /the database ends at batch \d+: operations that were acknowledged are missing/,
    );
    const env = { DATABASE_URL: address.url, TOLLGATE_IDENTITY_SEED: IDENTITY_SEED };
    expect(await place.run(['restored'], env)).toMatchObject({
      code: 1,
      output: expect.stringContaining('To go on without it: the same command with --accept'),
    });
    expect(await place.run(['restored', '--accept'], env)).toMatchObject({ code: 0 });
    const next = await startSpine(options);
    defer(() => next.stop());
    await becomesReady(next, 200);
    const id = first.headers.get('x-generation-id');
    expect(await next.generation(id)).toMatchObject({ state: 'settled' });
    await expect(next.generation(lostId)).rejects.toThrow('404');
    expect((await chat(next, 'next')).status).toBe(200);
    const settled = await askServer(standby, "SELECT count(*) AS n FROM locks WHERE state = 'settled'");
    expect(settled).toEqual({ n: '2' });
    expect(await next.faults()).toEqual([]);
  },
);
