import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { startGateway } from '../../support/gateway.ts';
import { until } from '../../support/tunnel-spine.ts';
import { DOMAIN } from '../../support/wallets.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';
import { startLegacyServer } from '../modern-to-legacy/legacy-server.ts';
import { callIn, endSession, listenIn, listenModern, openSession } from './clients.ts';
import { commandTool } from './offered-tools.ts';

// The gateway's process is killed in the middle of everything, and starts again on its database. Its provider dials
// in again.

/** Processes are started, on a machine that may be busy. */
const SLOW = { timeout: 90_000 };

test(
  'what ran is not charged, sessions go on where they were, and nothing stays behind in the proxy',
  SLOW,
  async () => {
    const legacy = await startLegacyServer();
    const kept = commandTool('tunnel/kept');
    const brief = commandTool('tunnel/brief', 'session_idle_ms = 1000\n');
    const gateway = await startGateway({ env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN } });
    onTestFinished(() => gateway.stop());
    const { account, key } = await gateway.openAccount('caller', 10);
    const door = { origin: gateway.baseUrl, key };
    const proxy = await dialIn({
      router: gateway.baseUrl,
      services: toolToml({ name: 'tunnel/legacy', url: legacy.url, provider: 'Tunnel' }) + kept.toml + brief.toml,
      limits: { toolStop: { termMs: 100, killMs: 500 } },
    });
    onTestFinished(() => proxy.kill());
    const money = async () =>
      ((await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as { data: Record<string, number> })
        .data;

    const session = await openSession(door, 'tunnel/legacy');
    const piped = await openSession(door, 'tunnel/kept');
    expect((await callIn(piped, 'count')).message.result).toMatchObject({ content: [{ text: '1' }] });
    const held = await callTool(door, 'tunnel/brief', 'elicit');
    expect(held.message.result.resultType).toBe('input_required');
    const streams = [await listenIn(session), await listenModern(door, 'tunnel/legacy')];
    const hanging = new Promise<void>((resolve) => {
      let begun = 0;
      legacy.events.on('hanging', () => ++begun === 3 && resolve());
    });
    const meta = { 'tollgate/idempotency-key': 'once' };
    const lost = [
      callIn(session, 'hang', {}, 'old'),
      callTool(door, 'tunnel/legacy', 'hang'),
      callTool(door, 'tunnel/legacy', 'hang', {}, { meta }),
      callIn(piped, 'never', {}, 2),
    ];
    const ends = Promise.allSettled(lost);
    await hanging;
    await until(() => kept.got('"never"').length === 1);
    // The gateway has sessions of its own at the server, which end by themselves.
    const upstream = legacy.seen.find(({ message }) => message.id === 'old')!.session!;

    await gateway.kill9();
    expect((await ends).map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
    for (const { over } of streams) expect((await over).how).toBe('broken');
    await gateway.restart();
    await proxy.logged('ready: calls can come', 2);
    expect(await money()).toMatchObject({ locked_micro_usdc: 0, balance_micro_usdc: 9_999_000 });

    // The client has said nothing of a restart: its session is the one at the server that it was.
    expect((await callIn(session, 'echo', { text: 'a' })).message.result).toMatchObject({ content: [{ text: 'a' }] });
    expect(legacy.sessions.has(upstream)).toBe(true);
    expect(legacy.seen.filter(({ text }) => text.includes('"echo"')).at(-1)!.session).toBe(upstream);
    expect((await callIn(piped, 'count', {}, 3)).message.result).toMatchObject({ content: [{ text: '2' }] });
    const again = await listenIn(session);
    await again.has(':');
    again.leave();

    const { inputRequests, requestState } = held.message.result;
    const inputResponses = { [Object.keys(inputRequests!)[0]!]: { action: 'accept', content: {} } };
    const late = await callTool(door, 'tunnel/brief', 'elicit', {}, { params: { requestState, inputResponses } });
    expect(late.message.error).toMatchObject({
      code: -32_602,
      message: expect.stringContaining('Repeat the request'),
    });
    // Whether the tool had acted when the gateway died, nobody knows; it was not paid, so its key runs it again.
    const begunAgain = once(legacy.events, 'hanging');
    const retried = callTool(door, 'tunnel/legacy', 'hang', {}, { meta });
    await begunAgain;
    legacy.cut();
    expect((await retried).status).toBe(502);
    expect(await money()).toMatchObject({ locked_micro_usdc: 0, balance_micro_usdc: 9_997_000 });

    // Nobody told the proxy of the sessions that the gateway had opened for modern clients, so they end by themselves.
    await until(() => brief.running().length === 1);
    const { length } = kept.running();
    expect(await endSession(piped)).toBe(204);
    await until(() => kept.running().length < length);
    const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
    expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
  },
);
