import { expect, onTestFinished, test } from 'vitest';
import { dialIn } from '../../support/dial-in.ts';
import { startProvide } from '../../support/provide-process.ts';
import { startRawMcp } from '../../support/raw-mcp.ts';
import { startTunnelSpine, until } from '../../support/tunnel-spine.ts';
import { solanaWallet } from '../../support/wallets.ts';
import { callTool, toolToml } from '../calls/modern-post.ts';
import { startLegacyServer } from '../modern-to-legacy/legacy-server.ts';
import { callIn, listenIn, listenModern, openSession } from './clients.ts';
import { commandTool } from './offered-tools.ts';
import { atThisLoad } from '../../support/at-this-load.ts';

// The proxy of a provider is killed and comes back, in whatever a client of either era was doing behind it.

/** Processes are started, on a machine that may be busy. */
const SLOW = { timeout: 90_000 };

const OK = '{"resultType":"complete","content":[{"type":"text","text":"here"}]}';

/**
 * A proxy with a legacy server, a command, and a modern server. By day it is a process of its own where calls run, and
 * else in this one, which cuts its connections in the same way.
 */
async function startWorld(isProcess = process.env['TOLLGATE_DEEP'] === '1') {
  const { spine } = await startTunnelSpine();
  const legacy = await startLegacyServer();
  const modern = await startRawMcp(
    ({ params }) => (params['name'] === 'hang' ? () => {} : OK),
    ['{"name":"hang","inputSchema":{"type":"object"}}'],
  );
  onTestFinished(() => modern.close());
  const command = commandTool('tunnel/command');
  const http = { provider: 'Tunnel' };
  const services =
    toolToml({ name: 'tunnel/legacy', url: legacy.url, ...http }) +
    toolToml({ name: 'tunnel/modern', url: modern.url, ...http }) +
    command.toml;
  const wallet = solanaWallet();
  const start = async (): Promise<() => Promise<void> | void> => {
    const options = { router: spine.origin, services, wallet };
    if (isProcess) {
      const proxy = await startProvide(options);
      onTestFinished(() => proxy.stop());
      return () => proxy.kill9();
    }
    const proxy = await dialIn(options);
    onTestFinished(() => proxy.kill());
    return () => proxy.kill();
  };
  let kill = await start();
  return {
    spine,
    legacy,
    modern,
    command,
    kill: async () => kill(),
    async again() {
      kill = await start();
    },
    counts: () => spine.app.metrics.text(),
  };
}

const free = async ({ spine }: Awaited<ReturnType<typeof startWorld>>) => (await spine.balance()).available;

test(
  'in the middle of calls: each ends with an error at once and costs nothing, and the sessions go on when it is back',
  SLOW,
  async () => {
    const world = await startWorld(true);
    const { spine, legacy, modern, command } = world;
    const sessions = {
      legacy: await openSession(spine, 'tunnel/legacy'),
      modern: await openSession(spine, 'tunnel/modern'),
      command: await openSession(spine, 'tunnel/command'),
    };
    const hanging = new Promise<void>((resolve) => {
      let begun = 0;
      legacy.events.on('hanging', () => ++begun === 2 && resolve());
    });
    const old = [callIn(sessions.legacy, 'hang'), callIn(sessions.modern, 'hang'), callIn(sessions.command, 'never')];
    const young = [
      callTool(spine, 'tunnel/legacy', 'hang'),
      callTool(spine, 'tunnel/modern', 'hang'),
      callTool(spine, 'tunnel/command', 'never'),
    ];
    await hanging;
    await until(() => modern.asked.length === 2 && command.got('"never"').length === 2);
    const before = await free(world);
    await world.kill();
    const killedAt = performance.now();
    // A client with a session takes another status than 200 for a broken connection.
    for (const { status, message } of await Promise.all(old))
      expect([status, message.error?.code]).toEqual([200, expect.any(Number)]);
    for (const { status, message } of await Promise.all(young))
      expect([status, message.error?.code]).toEqual([502, expect.any(Number)]);
    expect(performance.now() - killedAt).toBeLessThan(atThisLoad(2_000));
    await spine.quiet();
    expect((await free(world)) - before).toBe(6_000n);
    await until(() => command.running().length === 0);

    await world.again();
    expect((await callIn(sessions.legacy, 'echo', { text: 'a' })).message.result).toMatchObject({
      content: [{ text: 'a' }],
    });
    expect((await callIn(sessions.modern, 'echo')).message.result).toMatchObject({ content: [{ text: 'here' }] });
    // Its process died, and its session with it: another is begun with the client's own words, of which the client
    // sees nothing.
    expect((await callIn(sessions.command, 'count')).message.result).toMatchObject({ content: [{ text: '1' }] });
    for (const [service, tool] of [
      ['legacy', 'progress'],
      ['modern', 'echo'],
      ['command', 'count'],
    ] as const)
      expect((await callTool(spine, `tunnel/${service}`, tool)).status).toBe(200);
    expect(await free(world)).toBe(before);
  },
);

test(
  'while a call is held: its lock is not charged, the next round is an error, and a call from the beginning goes well',
  SLOW,
  async () => {
    const world = await startWorld();
    const { spine } = world;
    const before = await free(world);
    const held = await Promise.all([
      callTool(spine, 'tunnel/legacy', 'ask'),
      callTool(spine, 'tunnel/command', 'elicit'),
    ]);
    for (const { message } of held) expect(message.result.resultType).toBe('input_required');
    await world.kill();
    await world.again();
    const answer = ({ message }: (typeof held)[number]) => {
      const [question] = Object.keys(message.result.inputRequests!);
      return {
        requestState: message.result.requestState,
        inputResponses: { [question!]: { action: 'accept', content: { name: 'Ada' } } },
      };
    };
    const [viaHttp, viaPipe] = held;
    const second = [
      await callTool(spine, 'tunnel/legacy', 'ask', {}, { params: answer(viaHttp) }),
      await callTool(spine, 'tunnel/command', 'elicit', {}, { params: answer(viaPipe) }),
    ];
    for (const { message } of second) expect(message.error?.code).toEqual(expect.any(Number));
    expect(await spine.faults()).toEqual([]);
    expect(await free(world)).toBe(before);
    const anew = await callTool(spine, 'tunnel/legacy', 'ask');
    const last = await callTool(spine, 'tunnel/legacy', 'ask', {}, { params: answer(anew) });
    expect(last.message.result.content).toMatchObject([{ text: 'accept Ada' }]);
    expect(await free(world)).toBe(before - 1_000n);
  },
);

test('while clients listen: a stream ends, or goes on when it is back; and they can listen again', SLOW, async () => {
  const world = await startWorld();
  const { spine, legacy } = world;
  const session = await openSession(spine, 'tunnel/legacy');
  const piped = await openSession(spine, 'tunnel/command');
  const old = [await listenIn(session), await listenIn(piped)];
  const young = await listenModern(spine, 'tunnel/legacy', { resourcesListChanged: true });
  const ofCommand = await listenModern(spine, 'tunnel/command');
  await Promise.all([
    ...old.map((stream) => stream.has(':')),
    young.has('acknowledged'),
    ofCommand.has('acknowledged'),
  ]);
  await world.kill();
  // A client with a session comes back by itself.
  for (const { over } of old) expect((await over).how).toBe('whole');
  await world.again();
  // What the gateway listens to for a modern client, it listens to again. A process that died has nothing more to
  // tell: its client asks anew.
  expect(await ofCommand.over).toMatchObject({ how: 'whole', text: expect.stringContaining('"result"') });
  const anew = await listenModern(spine, 'tunnel/command');
  await anew.has('acknowledged');
  const again = await listenIn(session);
  await again.has(':');
  await until(() => {
    for (const { server } of legacy.sessions.values()) server.sendResourceListChanged();
    return again.text().includes('resources/list_changed') && young.text().includes('resources/list_changed');
  });
  expect(anew.text()).not.toContain('"result"');
  for (const stream of [again, young, anew]) stream.leave();
  await Promise.all([again.over, young.over, anew.over]);
  await until(async () => /^tollgate_mcp_listens\S* 0$/m.test(await world.counts()));
});
