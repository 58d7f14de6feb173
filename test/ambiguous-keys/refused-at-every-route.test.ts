import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { agentBlock, startAgent, type Agent } from '../support/a2a-agent/index.ts';
import { startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { spellingsOf } from '../support/spellings.ts';
import { AGENT, ENDPOINTS, SERVICE, TOOL, withMember, type A2aHandler } from './routes.ts';
import { startRecordingTools, type RecordingTools } from './recording-tools.ts';

/*
 * What is priced is what is forwarded. A member whose name some decoder takes for one that the gateway acts on
 * would be obeyed by that provider and not seen by the gateway, so it is refused, whichever route it comes to.
 */

let spine: Spine;
let agent: Agent;
let tools: RecordingTools;
const sessions: Record<'service' | 'all', string> = { service: '', all: '' };

beforeAll(async () => {
  [tools, agent] = await Promise.all([startRecordingTools(TOOL), startAgent({ version: 'both' })]);
  const tool = `
[[tools]]
name = "${SERVICE}"
display_name = "Fixture: Tools"
provider_name = "Fixture"
endpoint = "${tools.url}"
[tools.pricing]
per_call = 0.002
`;
  spine = await startSpine({
    toml: `${UNHURRIED}${tool}${agentBlock({ name: AGENT, endpoint: agent.url, pricing: 'per_call = 0.003' })}`,
  });
  for (const [kind, path] of [
    ['service', `/mcp/${SERVICE}`],
    ['all', '/mcp'],
  ] as const) {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const reply = await post({ path }, JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }));
    expect(reply.status, reply.text).toBe(200);
    sessions[kind] = reply.session!;
    await post({ path, session: kind }, JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
  }
});
afterAll(async () => {
  await spine.stop();
  await agent.close();
  await tools.close();
});
afterEach(async () => {
  expect(await spine.faults()).toEqual([]);
});

async function post({ path, headers = {}, session }: Pick<A2aHandler, 'path' | 'headers' | 'session'>, body: string) {
  const response = await fetch(spine.origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${spine.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
      ...(session === undefined ? {} : { 'mcp-session-id': sessions[session] }),
    },
    body,
  });
  return { status: response.status, text: await response.text(), session: response.headers.get('mcp-session-id') };
}

/** What no provider may see. */
const FORGED = 'forged';
const forgeries = () =>
  [...spine.provider.log.map(({ text }) => text), ...agent.received.map(({ body }) => body), ...tools.bodies].filter(
    (text) => text.includes(FORGED),
  );

/** Other names of the cap, which the gateway knows as such. */
const KNOWN_NAMES: ReadonlySet<string> = new Set(['maxTokens', 'maxCompletionTokens']);
/** Routes that get every spelling; the others a part of them for each name, which part goes round. */
const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const WHOLE: ReadonlySet<string> = new Set(
  DEEP ? ['chat', 'MCP, bare', 'A2A 1.0', 'A2A 0.3 over HTTP+JSON'] : ['chat'],
);
const PARTS = DEEP ? 5 : 10;
const AT_ONCE = 16;

/** The name of the proto is read as the name itself by A2A, and by the API of Google. */
const isProtoName = (door: string, how: string) =>
  how === 'snake case' && (door.startsWith('A2A') || door === 'gemini');

function* attemptsAt({ name: door, body, places }: A2aHandler) {
  let n = 0;
  for (const [path, names] of places) {
    for (const name of names) {
      n += 1;
      for (const [i, { how, text }] of spellingsOf(name).entries()) {
        if (KNOWN_NAMES.has(text) || isProtoName(door, how) || (!WHOLE.has(door) && (i + n) % PARTS !== 0)) continue;
        yield {
          what: `${[...path, name].join('.')}, ${how}`,
          name,
          body: withMember(body, path, text, FORGED, i % 2 === 0),
        };
      }
    }
  }
}

function refusalIn(text: string, wire: A2aHandler['wire']): string {
  const json = JSON.parse(text) as
    | { error?: { message: string; code: number }; message?: string; detail?: string }
    | unknown[];
  const reply = (Array.isArray(json) ? json[0] : json) as {
    error?: { message: string; code: number };
    message?: string;
  };
  if (wire === 'json-rpc') expect([-32_600, -32_602]).toContain(reply.error?.code);
  return reply.error?.message ?? reply.message ?? text;
}

test.each(ENDPOINTS)('$name', async (door) => {
  const honest = await post(door, JSON.stringify(door.body).replace('"messageId":""', `"messageId":"${door.name}"`));
  expect(honest.status, honest.text).toBeLessThan(300);
  expect(honest.text).not.toMatch(/"error":\{/);

  const attempts = [...attemptsAt(door)];
  expect(attempts.length).toBeGreaterThan(3);
  for (let i = 0; i < attempts.length; i += AT_ONCE)
    await Promise.all(
      attempts.slice(i, i + AT_ONCE).map(async ({ what, name, body }) => {
        const { status, text } = await post(door, body);
        if (door.wire !== 'json-rpc') expect(status, `${what}: ${text}`).toBe(400);
        expect(refusalIn(text, door.wire), what).toContain(` must be written ${name}`);
      }),
    );
  expect(forgeries()).toEqual([]);
});
