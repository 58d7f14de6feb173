import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createTalk } from '../../../a2a/contract/client-calls.ts';
import { callTool, toolToml } from '../../../mcp/calls/modern-post.ts';
import { agentBlock } from '../../../support/a2a-agent/agent-spine.ts';
import { DOMAIN, solanaWallet } from '../../../support/wallets.ts';
import { offeredModel } from '../../../support/dial-in.ts';
import { askTunnel, startTunnelSpine, TUNNEL_MODEL } from '../../../support/tunnel-spine.ts';

// A provider whose service refuses its calls learns why, at its own page and in the log of its proxy.

interface OwnServices {
  readonly services: readonly {
    readonly status: string;
    readonly last_hour: object;
    readonly last_failures: readonly { readonly request_id: string; readonly at: string }[];
  }[];
}

test('its page has the last failures with the ids that its service got, and says that it is failing', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const { proxy, upstream } = await world.supply('Expired');
  const page = () => world.ownPage<OwnServices>('/services', proxy.wallet);
  await (await spine.post('/chat/completions', askTunnel('hello !tokens:3'))).text();
  expect((await page()).services).toMatchObject([{ status: 'healthy', last_failures: [] }]);

  for (let call = 0; call < 9; call++) {
    // Each account by itself, so that the provider rests for none of the others.
    const { key } = await spine.tenant(`caller-${call}`, '1');
    const reply = await spine.post('/chat/completions', askTunnel('hello !status:401'), {
      authorization: `Bearer ${key}`,
      'x-request-id': `mine-${call}`,
    });
    expect(reply.status).toBe(500);
    // The consumer does not read what the service says about its key.
    expect(await reply.text()).not.toContain('upstream said');
  }
  const [service] = (await page()).services;
  expect(service).toMatchObject({ last_hour: { requests: 10, failures: 9 } });
  expect(['failing', 'cooling_down']).toContain(service!.status);
  expect(service!.last_failures).toHaveLength(9);
  const got = upstream.log.map(({ headers }) => headers['x-request-id']);
  expect(service!.last_failures.map(({ request_id: id }) => id)).toEqual(got.slice(-9).toReversed());
  for (const failure of service!.last_failures)
    expect(failure).toMatchObject({ status: 401, reason: 'it answered with status 401', said: expect.any(String) });
  expect(await spine.faults()).toEqual([]);
});

test('a page of HTML with status 200 is told with its status and its first words, of which 20 are kept', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const html = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(`\n  <html>\u202e<title>Sign in</title>\n${'x'.repeat(100_000)}`);
  });
  await new Promise<void>((resolve) => html.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void html.close());
  const url = `http://127.0.0.1:${(html.address() as AddressInfo).port}`;
  const services =
    offeredModel({ url: `${url}/v1`, provider: 'Page' }) + toolToml({ name: 'page/tool', url, provider: 'Page' });
  const proxy = await world.dialIn({ services });
  const asked = (stream: boolean, nth: number) =>
    spine
      .tenant(`reader-${nth}`, '1')
      .then(({ key }) =>
        spine.post('/chat/completions', { ...askTunnel('hello'), stream }, { authorization: `Bearer ${key}` }),
      );
  for (let call = 0; call < 22; call++) await (await asked(call % 2 === 0, call)).text();
  expect((await callTool(spine, 'page/tool', 't')).message.error).toBeDefined();
  const { services: own } = await world.ownPage<OwnServices>('/services', proxy.wallet);
  expect(own.every(({ last_failures: last }) => last.length > 0)).toBe(true);
  const failures = own.flatMap(({ last_failures: last }) => last);
  expect(own.find(({ last_failures: last }) => last.length === 20)).toBeDefined();
  for (const { status, said } of failures as unknown as { status: number; said: string }[]) {
    expect(status).toBe(200);
    expect(said).toMatch(/^<html>.*Sign in/);
    expect(said.length).toBeLessThanOrEqual(300);
    expect(said).not.toMatch(/[\n\u202e]/);
  }
});

test.each([401, 403, 407])(
  'a tool and an agent that answer %i are told with their words, also to the operator',
  async (status) => {
    const world = await startTunnelSpine();
    const { spine } = world;
    const gate = createServer((request, response) => {
      request.resume();
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end('{"error":"your licence\\u001b[2J of Acme has run out"}');
    });
    await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void gate.close());
    const url = `http://127.0.0.1:${(gate.address() as AddressInfo).port}`;
    const services =
      toolToml({ name: 'gate/tool', url, provider: 'Gate' }) +
      agentBlock({ name: 'gate/agent', endpoint: url, provider: 'Gate' });
    const proxy = await world.dialIn({ services });
    const headers = { authorization: `Bearer ${spine.key}` };
    expect((await callTool(spine, 'gate/tool', 't')).message.error).toBeDefined();
    const said = createTalk({ url: `${spine.origin}/a2a/gate/agent`, headers }, '1.0', 'JSONRPC');
    const answer = JSON.stringify(
      await said.call('SendMessage', {
        message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hello' }] },
      }),
    );
    // The consumer does not read what the service says about its key.
    expect(answer).not.toContain('licence');
    const { services: own } = await world.ownPage<OwnServices>('/services', proxy.wallet);
    for (const { last_failures: last } of own)
      expect(last[0]).toMatchObject({ status, said: expect.stringContaining('of Acme has run out') as string });
    expect(own).toHaveLength(2);
    const listed = await fetch(`${spine.origin}/admin/v1/providers/failures?provider=Gate`, {
      headers: { authorization: `Bearer ${spine.adminKey}` },
    });
    const { data } = (await listed.json()) as { data: readonly { service: string; said: string }[] };
    expect(new Set(data.map(({ service }) => service))).toEqual(new Set(['gate/tool', 'gate/agent']));
    for (const { said: words } of data) expect(words).toContain('of Acme has run out');
    const command = ['provider', 'failures', 'Gate', '--url', spine.origin];
    const { stdout } = await promisify(execFile)(process.execPath, ['bin/tollgate.mjs', ...command], {
      env: { ...process.env, TOLLGATE_ADMIN_KEY: spine.adminKey },
    });
    expect(stdout).toMatch(new RegExp(`gate/tool +${status} .*of Acme has run out`));
    expect(stdout).not.toContain('\u001b');
    expect(await spine.faults()).toEqual([]);
  },
);

test('`provide calls --failed` prints its own failures, and none of another provider', async () => {
  const world = await startTunnelSpine();
  const { spine } = world;
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-failures-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const wallet = solanaWallet();
  await writeFile(join(folder, 'wallet.json'), JSON.stringify([...wallet.secret]), { mode: 0o600 });
  const { proxy, upstream } = await world.supply('Mine', { wallet });
  const { pinned: other } = await world.supply('Other');
  const config = join(folder, 'provider.toml');
  const write = (url: string) =>
    writeFile(
      config,
      `[router]\nurl = "${url}"\n[router.siwx]\nchain_id = "${wallet.chainId}"\nkeypair_file = "wallet.json"\ndomain = "${DOMAIN}"\n` +
        offeredModel({ url: upstream.url, provider: 'Mine' }),
    );
  const run = () =>
    promisify(execFile)(process.execPath, ['bin/tollgate.mjs', 'provide', 'calls', '--config', config, '--failed'], {
      env: { ...process.env, TEST_UPSTREAM_KEY: 'upstream-secret-canary' },
    });
  await write(spine.origin);
  expect((await run()).stdout).toBe('No call has failed since the gateway started.\n');
  for (const pinned of [`${proxy.id}:${TUNNEL_MODEL}`, other])
    await (await spine.post('/chat/completions', { ...askTunnel('hello !status:401'), model: pinned })).text();
  const id = upstream.log.at(-1)!.headers['x-request-id'] as string;
  const { stdout } = await run();
  expect(stdout.split('\n').filter((line) => line.includes(TUNNEL_MODEL))).toHaveLength(1);
  expect(stdout).toMatch(
    new RegExp(`${TUNNEL_MODEL} +401  ${id} +it answered with status 401 +the test provider was told to answer 401`),
  );
  expect(stdout).not.toContain('canary');
  // A proxy that is away can ask too.
  await proxy.close();
  expect((await run()).stdout).toBe(stdout);
  await write('http://127.0.0.1:9');
  await expect(run()).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('127.0.0.1:9') as string });
});
