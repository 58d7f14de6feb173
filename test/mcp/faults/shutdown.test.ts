import { expect, onTestFinished, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { startGateway } from '../../support/gateway.ts';
import { startGatewayHere } from '../../support/gateway-here.ts';
import { startRawMcp, type Asked } from '../../support/raw-mcp.ts';
import { until } from '../../support/tunnel-spine.ts';
import { DOMAIN } from '../../support/wallets.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';
import { startLegacyServer } from '../modern-to-legacy/legacy-server.ts';
import { events, startScripted } from '../sessions/scripted-server.ts';
import { callIn, listenIn, listenModern, openSession, type Listening } from './clients.ts';
import { commandTool } from './offered-tools.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// SIGTERM with everything open that MCP can have open: calls finish, those who only listen are sent away, what is
// held is let go.

/** Processes are started, on a machine that may be busy. */
const SLOW = { timeout: 90_000 };

const DRAIN_MS = 20_000;
/** What a stopping gateway may write is of this level at most. */
const COMPLAINT = /unhandled|"level":"(?:error|fatal)"/i;
const DONE = '{"resultType":"complete","content":[{"type":"text","text":"done"}]}';

/** A modern server whose tool `wait` answers when it is let, and that tells of changes for ever. */
async function startModern() {
  const gate = Promise.withResolvers<void>();
  const waiting: Asked[] = [];
  const listeners: Asked[] = [];
  const server = await startRawMcp(
    async (asked) => {
      if (asked.method === 'subscriptions/listen') {
        listeners.push(asked);
        return (response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          response.write(
            'data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{}}}\n\n',
          );
        };
      }
      waiting.push(asked);
      await gate.promise;
      return DONE;
    },
    ['{"name":"wait","inputSchema":{"type":"object"}}'],
  );
  onTestFinished(() => server.close());
  return { url: server.url, waiting, listeners, finish: () => gate.resolve() };
}

/** The gateway is a process where its end by a signal is tested, and in this one where only its closing is. */
async function startWorld(start: typeof startGatewayHere, drainMs: number, more = '') {
  const legacy = await startLegacyServer();
  const modern = await startModern();
  const own = toolToml({ name: 'legacy', url: legacy.url }) + toolToml({ name: 'modern', url: modern.url });
  const gateway = await start({
    env: { TOLLGATE_SIGN_IN_DOMAINS: DOMAIN },
    toml: `[limits]\ndrain_on_shutdown_ms = ${drainMs}\n${own}${more}`,
  });
  onTestFinished(() => gateway.stop());
  const { key, account } = await gateway.openAccount('caller', 10);
  const door = { origin: gateway.baseUrl, key };
  const money = async () =>
    ((await gateway.admin('GET', `/accounts/${encodeURIComponent(account)}`)) as { data: Record<string, number> }).data;
  return { legacy, modern, gateway, door, money };
}

test(
  'calls finish and are paid, listeners and held calls hold nothing up, and sessions go on after the restart',
  SLOW,
  async () => {
    const { legacy, modern, gateway, door, money } = await startWorld(startGateway, DRAIN_MS);
    const command = commandTool('tunnel/command');
    const proxy = await dialIn({
      router: door.origin,
      services: command.toml,
      limits: { toolStop: { termMs: 100, killMs: 500 } },
    });
    onTestFinished(() => proxy.kill());
    const ofLegacy = await openSession(door, 'legacy');
    const ofModern = await openSession(door, 'modern');
    const ofCommand = await openSession(door, 'tunnel/command');
    const streams: Listening[] = [
      await listenIn(ofLegacy),
      await listenIn(ofModern),
      await listenIn(ofCommand),
      await listenModern(door, 'legacy'),
      await listenModern(door, 'modern'),
      await listenModern(door, 'tunnel/command'),
    ];
    await Promise.all(streams.map((stream, index) => stream.has(index < 3 ? ':' : 'acknowledged')));
    const held = [await callTool(door, 'legacy', 'ask'), await callTool(door, 'tunnel/command', 'elicit')];
    for (const { message } of held) expect(message.result.resultType).toBe('input_required');
    const cancelled = new Promise((resolve) => legacy.events.once('cancelled-message', resolve));
    const calls = [callTool(door, 'modern', 'wait'), callIn(ofModern, 'wait')];
    await until(() => modern.waiting.length === 2);
    expect(await money()).toMatchObject({ locked_micro_usdc: 4_000 });

    const begun = performance.now();
    const exit = gateway.term();
    for (const stream of streams) await stream.over;
    expect(modern.waiting.some(({ left }) => left.aborted)).toBe(false);
    modern.finish();
    for (const { message } of await Promise.all(calls))
      expect(message.result).toMatchObject({ content: [{ text: 'done' }] });
    await cancelled;
    expect(await exit).toBe(0);
    expect(performance.now() - begun).toBeLessThan(Math.min(atThisLoad(DRAIN_MS / 2), 0.9 * DRAIN_MS));
    expect(gateway.logs()).not.toMatch(COMPLAINT);
    await until(() => modern.listeners.every(({ left }) => left.aborted));

    await gateway.restart();
    await proxy.logged('ready: calls can come', 2);
    expect(await money()).toMatchObject({ locked_micro_usdc: 0, balance_micro_usdc: 9_998_000 });
    expect((await callIn(ofLegacy, 'echo', { text: 'a' })).message.result).toMatchObject({ content: [{ text: 'a' }] });
    expect((await callIn(ofModern, 'wait', {}, 2)).message.result).toMatchObject({ content: [{ text: 'done' }] });
    expect((await callIn(ofCommand, 'count')).message.result).toMatchObject({ content: [{ text: '1' }] });
    const { data } = (await gateway.admin('GET', '/audit')) as { data: { checks: { ok: boolean }[] } };
    expect(data.checks.filter(({ ok }) => !ok)).toEqual([]);
  },
);

test(
  'calls past the limit are cut and not charged; one that asks its client meanwhile is an error at once',
  SLOW,
  async () => {
    const [called, ask] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const question = {
      jsonrpc: '2.0',
      id: 1,
      method: 'elicitation/create',
      params: { message: '?', requestedSchema: { type: 'object', properties: {} } },
    };
    const asking = await startScripted({
      async answer({ message }, response) {
        if (message.method !== 'tools/call') return;
        events(response).flushHeaders();
        called.resolve();
        await ask.promise;
        response.write(`data: ${JSON.stringify(question)}\n\n`);
      },
    });
    const { legacy, gateway, door, money } = await startWorld(
      startGatewayHere,
      1_500,
      toolToml({ name: 'asking', url: asking.url }),
    );
    const session = await openSession(door, 'legacy');
    const hanging = new Promise<void>((resolve) => {
      let begun = 0;
      legacy.events.on('hanging', () => ++begun === 2 && resolve());
    });
    const calls = [callIn(session, 'hang'), callTool(door, 'legacy', 'hang')];
    const ends = Promise.allSettled(calls);
    const asked = callTool(door, 'asking', 'ask');
    await Promise.all([hanging, called.promise]);
    const begun = performance.now();
    const exit = gateway.term();
    await until(async () => (await fetch(`${door.origin}/health/ready`)).status === 503);
    ask.resolve();
    const { status, message } = await asked;
    expect([status, message.error?.message]).toEqual([503, expect.stringContaining('shutting down')]);
    await until(() => asking.asked.some(({ message: told }) => told.method === 'notifications/cancelled'));
    await ends;
    expect(await exit).toBe(0);
    expect(performance.now() - begun).toBeLessThan(atThisLoad(8_000));
    expect(gateway.logs()).not.toMatch(/unhandled|"level":"fatal"/i);
    await gateway.restart();
    expect(await money()).toMatchObject({ locked_micro_usdc: 0, balance_micro_usdc: 10_000_000 });
    expect((await callIn(session, 'echo', { text: 'a' }, 2)).message.result).toMatchObject({
      content: [{ text: 'a' }],
    });
  },
);
