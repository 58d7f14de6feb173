import { expect, test } from 'vitest';
import { META } from '../../../src/mcp/wire/revisions.ts';
import { startBridge } from './bridge.ts';
import { EVENTS, startRawServer, type RawRequest } from './raw-legacy-server.ts';

/** One more is opened to learn of the server. */
const SESSIONS = 150;

test('sessions that were opened and calls that were held, and that nobody came back to, are gone after their time', async () => {
  const server = await startRawServer((_request, response) => {
    response.writeHead(200, EVENTS).write('data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}\n\n');
    return null;
  });
  let deleted = 0;
  const left = new Promise<void>((resolve) =>
    server.events.on('seen', ({ http }: RawRequest) => http === 'DELETE' && ++deleted === SESSIONS + 1 && resolve()),
  );
  // One account may hold half of the calls of an offer.
  const bounds = { perAccountMax: 2 * SESSIONS + 2, perOfferMax: 2 * SESSIONS + 2 };
  const bridge = await startBridge(server.url, {
    // Longer than a busy machine stalls between the two requests of a call.
    sessions: { idleMs: 3_000, ...bounds },
    held: { ttlMs: 3_000, ...bounds },
  });
  for (let client = 0; client < SESSIONS; client += 10) {
    const round = Array.from({ length: 10 }, (_, index) =>
      bridge.post(
        'tools/call',
        { name: 't' },
        {
          capabilities: { roots: {} },
          meta: { [META.clientInfo]: { name: `client-${client + index}`, version: '1' } },
        },
      ),
    );
    for (const { message } of await Promise.all(round)) expect(message.result?.['resultType']).toBe('input_required');
  }
  await left;
  expect(bridge.held.size).toBe(0);
  expect(server.seen.filter(({ message }) => message.method === 'notifications/cancelled')).toHaveLength(SESSIONS);
  expect(bridge.sessions.size).toBe(0);
  expect(await bridge.faults()).toEqual([]);
});
