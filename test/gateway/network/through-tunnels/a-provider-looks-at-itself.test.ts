import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, inject, onTestFinished, test } from 'vitest';
import { earningsOf } from '#billing';
import { awayFromMidnight } from '../../../support/away-from-midnight.ts';
import { BOTH_ENGINES } from '../../../support/engines.ts';
import { freshDatabase } from '../../../support/fresh-database.ts';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine, TUNNEL_MODEL } from '../../../support/tunnel-spine.ts';
import { DOMAIN, signInHeaders, solanaWallet } from '../../../support/wallets.ts';

// What a provider sees of its calls and its money, by the commands of `tollgate-provide` and by the routes.

interface Calls {
  readonly data: readonly {
    readonly id: string;
    readonly earned_micro_usdc: number;
    readonly charged_micro_usdc: number;
    readonly fee_micro_usdc: number;
  }[];
  readonly next_cursor: string | null;
}

test.each(BOTH_ENGINES)(
  '%s: status, calls and earnings are those of the wallet in the file, and their sums those of the ledger',
  async (engine) => {
    await awayFromMidnight();
    const database = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : undefined;
    if (database !== undefined) onTestFinished(() => database.drop());
    const world = await startTunnelSpine(
      '[billing]\nfee_bps = 1000\n',
      database === undefined ? {} : { databaseUrl: database.url },
    );
    const { spine } = world;
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-own-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const wallet = solanaWallet();
    await writeFile(join(folder, 'wallet.json'), JSON.stringify([...wallet.secret]), { mode: 0o600 });
    const { proxy, upstream, pinned } = await world.supply('Mine', { wallet, prompt: 1000, completion: 1000 });
    const { pinned: other } = await world.supply('Other', { prompt: 1000, completion: 1000 });
    const file = join(folder, 'provider.toml');
    await writeFile(
      file,
      `[router]\nurl = "${spine.origin}"\n[router.siwx]\nchain_id = "${wallet.chainId}"\nkeypair_file = "wallet.json"\ndomain = "${DOMAIN}"\n` +
        offeredModel({ url: upstream.url, provider: 'Mine' }),
    );
    const env = { ...process.env, TEST_UPSTREAM_KEY: 'upstream-secret-canary' };
    const run = async (...args: string[]) =>
      (
        await promisify(execFile)(process.execPath, ['src/program/cli/provider-main.ts', ...args, '--config', file], {
          env,
        })
      ).stdout;
    const call = async (model: string, content = 'hello !tokens:3') => {
      const reply = await spine.post('/chat/completions', { ...askTunnel(content), model });
      await reply.text();
      return reply.headers.get('x-generation-id')!;
    };

    expect(await run('calls')).toBe('No call has ended yet.\n');
    const ids = [await call(pinned), await call(pinned), await call(pinned)];
    const stranger = await call(other);
    await call(pinned, 'hello !status:401');
    await spine.quiet();

    const listed = JSON.parse(await run('calls', '--json')) as Calls['data'];
    expect(listed.map(({ id }) => id)).toEqual(ids.toReversed());
    for (const { charged_micro_usdc: charged, fee_micro_usdc: fee, earned_micro_usdc: earned } of listed) {
      expect(charged).toBeGreaterThan(0);
      expect(earned + fee).toBe(charged);
    }
    const text = await run('calls');
    for (const id of ids) expect(text).toMatch(new RegExp(`${id} +${TUNNEL_MODEL} .* complete`));
    expect(text).not.toContain(stranger);
    expect(text).not.toContain(spine.account);
    expect((await run('calls', '--limit', '2')).trim().split('\n')).toHaveLength(3);

    const sum = listed.reduce((all, { earned_micro_usdc: earned }) => all + earned, 0);
    expect(BigInt(sum)).toBe((await spine.app.ledger.balance(earningsOf(wallet.providerId)))!.available);
    const earnings = await run('earnings');
    expect(earnings).toContain(`to be paid    ${sum / 1e6} USD`);
    expect(earnings).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\d\\d +${TUNNEL_MODEL} +3 +${sum / 1e6}`, 'm'));
    expect(earnings).toMatch(new RegExp(`^all +3 +${sum / 1e6}`, 'm'));

    const failed = upstream.log.at(-1)!.headers['x-request-id'] as string;
    expect(await run('calls', '--failed')).toMatch(new RegExp(`401 +${failed} +it answered with status 401`));
    const status = await run('status');
    expect(status).toContain(`provider  ${wallet.providerId}`);
    expect(status).toMatch(/proxy +connected since /);
    expect(status).toMatch(new RegExp(`${TUNNEL_MODEL} +\\S+ +4 +1 .*it answered with status 401`));
    await expect(run('withdraw')).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('This gateway pays over no chain of your wallet') as string,
    });

    // Each page has its own calls, and a cursor of another list is refused.
    const headers = await signInHeaders(wallet);
    const page = async (query: string) => {
      const answer = await fetch(`${spine.url}/provider/calls?${query}`, { headers });
      return { status: answer.status, body: (await answer.json()) as Calls };
    };
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { body }: { readonly body: Calls } = await page(`limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`);
      found.push(...body.data.map(({ id }) => id));
      cursor = body.next_cursor;
    }
    expect(found).toEqual(ids.toReversed());
    expect((await page('cursor=x')).status).toBe(400);

    // An answer that reports a failure is one of the calls, and has failed.
    const errs = await call(pinned, 'hello !finish:error');
    await spine.quiet();
    const [row] = (await run('calls', '--limit', '1')).trim().split('\n').slice(-1);
    expect(row).toMatch(new RegExp(`${errs} +${TUNNEL_MODEL} .* 0 +failed`));
    const [newest] = JSON.parse(await run('calls', '--failed', '--json')) as readonly Readonly<
      Record<string, unknown>
    >[];
    expect(newest).toMatchObject({ service: TUNNEL_MODEL, status: 200, said: null });
    expect(newest!['reason']).toContain('it answered with a failure');

    await proxy.close();
    await expect(run('status')).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('away') as string });
  },
);
