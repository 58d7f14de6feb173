import { expect, test } from 'vitest';
import { createKeepAlive, type ClientAnswer } from '#http';
import { GatewayError } from '#errors';
import { createSessionTransport } from '../../../src/mcp/http/session-transport.ts';
import { createReplays } from '../../../src/mcp/call/replays.ts';
import type { RequestContext } from '../../../src/mcp/call/stateless.ts';
import type { KeptSession } from '../../../src/mcp/sessions/kept-sessions.ts';

test("the gateway's own faults in a batch are reported, and those of clients are not", async () => {
  const faults: unknown[] = [];
  const fault = new Error('the database is broken');
  const refused = new GatewayError('invalid_request', 'no');
  const none = () => {
    throw new Error('only messages of a batch are here');
  };
  const door = createSessionTransport<KeptSession>(
    {
      open: none,
      enter: async (_service, id, { account }) => ({
        session: { id, account },
        ended: new AbortController().signal,
        leave: () => {},
      }),
      request: (_use, { method }) => Promise.reject(method === 'tools/list' ? refused : fault),
      tell: () => Promise.reject(fault),
      listen: none,
      end: none,
    },
    {
      replays: createReplays({ now: Date.now }),
      keepAlive: createKeepAlive(60_000),
      onError: (error) => faults.push(error),
    },
  );
  const texts = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}',
    '{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
  ];
  const answers: string[] = [];
  const answer: ClientAnswer = {
    events: async () => {},
    end(text) {
      if (typeof text === 'string') answers.push(text);
    },
    body: () => null,
    close: () => {},
  };
  const context = { caller: { account: 'alice' }, requestId: 'r' } as RequestContext;
  await door.post('acme/tools', { kind: 'batch', texts, session: 's', acceptsEvents: true }, context, answer);
  expect(JSON.parse(answers[0]!)).toMatchObject([
    { id: 1, error: { message: 'Internal error' } },
    { id: 2, error: { message: 'no' } },
  ]);
  expect(faults).toEqual([fault, fault]);
});
