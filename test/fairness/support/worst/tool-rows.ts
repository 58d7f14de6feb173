import { SIGN_IN_TOML } from '../../../support/wallets.ts';
import { BOUNDS } from '#wire';
import { BEYOND, BEYOND_IN_A_LINE, LINE_BYTES, within } from './shapes.ts';
import type { Answer, Asked, Row, Usual, World } from './world.ts';

/* MCP servers and A2A agents. */

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'worst', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A request of MCP without a session. */
const asks =
  (server: string, method: string, params: Readonly<Record<string, unknown>> = {}) =>
  (world: World) => {
    const name = params['name'] ?? params['uri'];
    return world.ask(
      `/mcp/m/${server}`,
      { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META } },
      {
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
      },
    );
  };

const call = (server: string) => asks(server, 'tools/call', { name: 'read', arguments: {} });

/** A request of MCP in a session, as of 2025-11-25. */
const inSession =
  (server: string, method: string, params: object) =>
  async (world: World): Promise<string> => {
    const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };
    const post = (body: object, more: Readonly<Record<string, string>> = {}) =>
      fetch(`${world.gateway.baseUrl}/mcp/m/${server}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${world.key}`, ...headers, ...more },
        body: JSON.stringify({ jsonrpc: '2.0', ...body }),
      });
    const begun = await post({
      id: 0,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'worst', version: '1' } },
    });
    await begun.text();
    const session = { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' };
    await (await post({ method: 'notifications/initialized' }, session)).text();
    const answer = await post({ id: 1, method, params }, session);
    return `${answer.status} ${(await answer.text()).slice(0, 400)}`;
  };

/** The answer of a server to one method, whole or as an event. */
const answersTo =
  (method: string, result: (junk: string) => string, asEvent = false) =>
  ({ body }: Asked, junk: string): Answer | null => {
    if (!body.includes(`"method":"${method}"`)) return null;
    const id = /"id":("[^"]*"|\d+)/.exec(body)?.[1] ?? 'null';
    const text = `{"jsonrpc":"2.0","id":${id},"result":${result(junk)}}`;
    return asEvent ? { type: 'text/event-stream', body: `event: message\ndata: ${text}\n\n` } : { body: text };
  };

const TEXT = '"content":[{"type":"text","text":"x"}],"resultType":"complete"';
const called = (junk: string) => `{${TEXT},"structuredContent":{"x":${junk}}}`;
const withMeta = (junk: string) => `{${TEXT},"_meta":{"x":${junk}}}`;
/** As many parts as fit, each of which is looked at. */
const inParts = (junk: string) =>
  `{"content":[${'{"type":"text","text":""},'.repeat(19_000)}{"type":"text","text":""}],"resultType":"complete","_meta":{"x":${junk === '0' ? '0' : '1'}}}`;
const toolAsModel = (world: World) =>
  world.ask('/api/v1/chat/completions', {
    model: 'mcp/m/modern/read',
    max_tokens: 5_000,
    messages: [{ role: 'user', content: '{}' }],
  });
const row = (act: Row['act'], answer: Row['answer']): Row => ({ bound: 'message', act, answer: answer! });

/** A message with an id that came before is a repeat, which no agent gets. */
let messages = 0;
const message =
  (agent: string, method = 'message/send') =>
  (world: World) =>
    world.ask(`/a2a/m/${agent}`, {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        message: {
          kind: 'message',
          role: 'user',
          messageId: `m${messages++}`,
          parts: [{ kind: 'text', text: 'x' }],
        },
      },
    });
const said = (junk: string) =>
  `{"kind":"message","role":"agent","messageId":"a","parts":[{"kind":"text","text":"x"}],"metadata":{"x":${junk}}}`;
/** As every task, it has an id of its own. */
let tasks = 0;
const task = (junk: string) =>
  `{"kind":"task","id":"t${tasks++}","contextId":"c","status":{"state":"completed"},"artifacts":[{"artifactId":"a","parts":[{"kind":"text","text":"x"}]}],"metadata":{"x":${junk}}}`;
const asked = (id: string, result: string) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`;
const agentSays =
  (result: (junk: string) => string, asEvent = false) =>
  ({ body, method }: Asked, junk: string): Answer | null => {
    if (method !== 'POST') return null;
    const id = /"id":("[^"]*"|\d+)/.exec(body)?.[1] ?? 'null';
    const text = asked(id, result(junk));
    return asEvent ? { type: 'text/event-stream', body: `data: ${text}\n\n` } : { body: text };
  };

/** A card is kept for hours, so each look is at another agent. */
const CARDS = 150;
let nextCard = 0;

export const TOOL_ROWS: Readonly<Record<string, Row>> = {
  'a result of a tool': row(call('modern'), answersTo('tools/call', called)),
  'a result of a tool in an event': row(call('modern'), answersTo('tools/call', called, true)),
  'what is beside a result': row(call('modern'), answersTo('tools/call', withMeta)),
  'many parts of a result': row(call('modern'), answersTo('tools/call', inParts)),
  'JSON in the text of a result': row(
    toolAsModel,
    answersTo(
      'tools/call',
      (junk) =>
        `{"content":[{"type":"text","text":${JSON.stringify(junk)}}],"structuredContent":{"a":1},"resultType":"complete"}`,
    ),
  ),
  'parts that are mended': row(
    call('legacy'),
    answersTo(
      'tools/call',
      (junk) =>
        `{"content":[${'{"type":"text","text":"","annotations":null},'.repeat(6_000)}{"type":"text","text":""}],"_meta":{"x":${junk === '0' ? 0 : 1}}}`,
    ),
  ),
  'a result of an older server': row(call('legacy'), answersTo('tools/call', called)),
  'many parts of an older server': row(call('legacy'), answersTo('tools/call', inParts)),
  'a result for an older client': row(
    inSession('modern', 'tools/call', { name: 'read', arguments: {} }),
    answersTo('tools/call', called),
  ),
  'a result of an older server for an older client': row(
    inSession('legacy', 'tools/call', { name: 'read', arguments: {} }),
    answersTo('tools/call', called, true),
  ),
  'an error of a tool': row(call('modern'), ({ body }, junk) =>
    body.includes('"method":"tools/call"')
      ? {
          body: `{"jsonrpc":"2.0","id":${/"id":("[^"]*"|\d+)/.exec(body)![1]!},"error":{"code":-32603,"message":"x","data":${junk}}}`,
        }
      : null,
  ),
  'a resource': row(
    asks('modern', 'resources/read', { uri: 'x://y' }),
    answersTo(
      'resources/read',
      (junk) => `{"contents":[{"uri":"x://y","text":"x","_meta":{"x":${junk}}}],"resultType":"complete"}`,
    ),
  ),
  'a resource of an older server': row(
    asks('legacy', 'resources/read', { uri: 'x://y' }),
    answersTo('resources/read', (junk) => `{"contents":[{"uri":"x://y","text":"x","_meta":{"x":${junk}}}]}`),
  ),
  'a prompt': row(
    asks('modern', 'prompts/get', { name: 'p' }),
    answersTo(
      'prompts/get',
      (junk) =>
        `{"messages":[{"role":"user","content":{"type":"text","text":"x","_meta":{"x":${junk}}}}],"resultType":"complete"}`,
    ),
  ),
  'a list of resources': row(
    asks('modern', 'resources/list'),
    answersTo(
      'resources/list',
      (junk) => `{"resources":[{"uri":"x://y","name":"y","_meta":{"x":${junk}}}],"resultType":"complete"}`,
    ),
  ),
  'a long list of resources': row(
    asks('legacy', 'resources/list'),
    answersTo(
      'resources/list',
      (junk) =>
        `{"resources":[${Array.from({ length: 9_000 }, (_, i) => `{"uri":"x://${i}","name":"y"}`).join()}],"_meta":{"x":${junk === '0' ? 0 : 1}}}`,
    ),
  ),
  'a list of prompts': row(
    asks('legacy', 'prompts/list'),
    answersTo('prompts/list', (junk) => `{"prompts":[{"name":"p","_meta":{"x":${junk}}}]}`),
  ),
  'a tool as a model': row(toolAsModel, answersTo('tools/call', called)),
  'a message of an agent': row(message('agent'), agentSays(said)),
  'a task of an agent': row(message('agent'), agentSays(task)),
  'an event of an agent': row(message('agent', 'message/stream'), agentSays(said, true)),
  'a task of an agent as an event': row(message('agent', 'message/stream'), agentSays(task, true)),
  'many parts of an agent': row(
    message('agent'),
    agentSays(
      (junk) =>
        `{"kind":"message","role":"agent","messageId":"a","parts":[${'{"kind":"text","text":"x"},'.repeat(9_000)}{"kind":"text","text":"x"}],"metadata":{"x":${junk === '0' ? 0 : 1}}}`,
    ),
  ),
  'an error of an agent': row(message('agent'), ({ body, method }, junk) =>
    method === 'POST'
      ? {
          body: `{"jsonrpc":"2.0","id":${/"id":("[^"]*"|\d+)/.exec(body)![1]!},"error":{"code":-32603,"message":"x","data":[${junk}]}}`,
        }
      : null,
  ),
  'a message of an agent with the HTTP binding': row(message('rest'), ({ method }, junk) =>
    method === 'POST'
      ? { body: `{"message":{"role":"ROLE_AGENT","messageId":"a","parts":[{"text":"x"}],"metadata":{"x":${junk}}}}` }
      : null,
  ),
  'an agent as a model': row(
    (world) =>
      world.ask('/api/v1/chat/completions', {
        model: 'a2a/m/agent',
        max_tokens: 5_000,
        messages: [{ role: 'user', content: 'x' }],
      }),
    agentSays(task),
  ),
  'the card of an agent': {
    bound: 'card',
    async act(world) {
      const response = await fetch(`${world.gateway.baseUrl}/a2a/m/card-${nextCard++}/.well-known/agent-card.json`);
      return `${response.status} ${await response.text()}`;
    },
    answer: ({ path }, junk) =>
      path.includes('agent-card') || path.includes('agent.json')
        ? { body: card(path).replace(/}$/, () => `,"junk":${junk}}`) }
        : null,
  },
  'through /rpc': row(
    (world) =>
      world.ask('/api/v1/rpc', {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { service: 'm/modern', name: 'read', arguments: {} },
      }),
    answersTo('tools/call', called),
  ),
};

const dialledIn = { modern: call('far-modern'), legacy: call('far-legacy') };

/** What comes through the tunnel of a provider that dialled in. */
export const TUNNEL_ROWS: Readonly<Record<string, Row>> = {
  'a result of a tool': row(dialledIn.modern, answersTo('tools/call', called)),
  'a result of a tool in an event': row(dialledIn.modern, answersTo('tools/call', called, true)),
  'many parts of a result': row(dialledIn.modern, answersTo('tools/call', inParts)),
  'a result of an older server': row(dialledIn.legacy, answersTo('tools/call', called)),
  'a message of an agent': row(message('far-agent'), agentSays(said)),
  'a task of an agent': row(message('far-agent'), agentSays(task)),
};

/** The answer and some messages behind it, in one line. */
const inBatch = (messages: (junk: string) => string): Row['answer'] => {
  const alone = answersTo('tools/call', called);
  return (asked, junk) => {
    const answer = alone(asked, '0');
    return answer === null ? null : { body: `[${answer.body},${messages(junk)}]` };
  };
};
const LINES = {
  ...BEYOND_IN_A_LINE,
  ...within({ ...BOUNDS.message, bytesMax: LINE_BYTES }),
  'a line that is too long': BEYOND['empty objects']!,
};
const inLine = (act: Row['act'], answer: Row['answer'], shapes: NonNullable<Row['shapes']> = LINES): Row => ({
  ...row(act, answer),
  shapes,
});
/** For rows that have the worst of their own. */
const AS_MANY = { 'as many as fit': () => '1' };
const NOTE = '{"jsonrpc":"2.0","method":"notifications/x"}';
const LARGE_NOTE = `{"jsonrpc":"2.0","method":"notifications/x","params":[${Array(1_200).fill('{}').join()}]}`;
const notes = (note: string, count: number) =>
  inLine(
    dialledIn.modern,
    inBatch((junk) =>
      Array(junk === '0' ? 1 : count)
        .fill(note)
        .join(),
    ),
    AS_MANY,
  );

/** What a server says that the proxy of a provider runs, in lines. */
export const STDIO_ROWS: Readonly<Record<string, Row>> = {
  'a result of a tool': inLine(dialledIn.modern, answersTo('tools/call', called)),
  'a result of an older server': inLine(
    inSession('far-legacy', 'tools/call', { name: 'read', arguments: {} }),
    answersTo('tools/call', called),
  ),
  'members of an answer': inLine(
    dialledIn.modern,
    (asked, junk) => {
      const answer = answersTo('tools/call', called)(asked, '0');
      return answer && (junk === '0' ? answer : { body: `${answer.body.slice(0, -1)},${junk.slice(1)}` });
    },
    { names: BEYOND_IN_A_LINE['names in a line']! },
  ),
  'a message of a batch': inLine(
    dialledIn.modern,
    inBatch((junk) => `{"jsonrpc":"2.0","method":"notifications/x","params":{"x":${junk}}}`),
    BEYOND_IN_A_LINE,
  ),
  'many messages': notes(NOTE, 90_000),
  'many messages that are large': notes(LARGE_NOTE, 900),
};

/** The blocks of servers that the proxy runs, with the program that asks `url` for each line. */
export const stdioServices = (url: string, program: readonly string[]): string =>
  ['far-modern', 'far-legacy']
    .map(
      (name) => `
[[tools]]
name = "m/${name}"
provider_name = "Far"
command = ${JSON.stringify(program[0])}
args = ${JSON.stringify([...program.slice(1), `${url}/mcp/${name}`])}
pricing = { per_call = 0 }
`,
    )
    .join('');

export const tunnelServices = (url: string): string =>
  tool(url, 'far-modern', 'Far') + tool(url, 'far-legacy', 'Far') + agent(url, 'far-agent', 'Far');

export const tunnelToml = `
[limits]
requests_per_minute = 1000000
burst = 1000000
[upstream]
cooldown_ms = 1
[tunnel]
providers = "anyone"
${SIGN_IN_TOML}`;

const tool = (url: string, name: string, provider = `Tools ${name}`) => `
[[tools]]
name = "m/${name}"
provider_name = "${provider}"
endpoint = "${url}/mcp/${name}"
pricing = { per_call = 0 }
`;
const agent = (url: string, name: string, provider = `Agent ${name}`) => `
[[agents]]
name = "m/${name}"
provider_name = "${provider}"
endpoint = "${url}/agents/${name}"
pricing = { per_call = 0 }
`;

export const toolToml = (url: string): string => `
[limits]
requests_per_minute = 1000000
burst = 1000000
[upstream]
cooldown_ms = 1
${tool(url, 'modern')}${tool(url, 'legacy')}${agent(url, 'agent')}${agent(url, 'rest')}${Array.from({ length: CARDS }, (_, at) => agent(url, `card-${at}`)).join('')}`;

const CAPABILITIES = '{"tools":{},"resources":{},"prompts":{}}';

export const toolUsual: Usual = ({ method, path, body }) => {
  if (path.includes('agent-card') || path.includes('agent.json')) return { body: card(path) };
  if (method === 'GET') return { status: 405, body: '' };
  const { id, method: what } = JSON.parse(body === '' ? '{}' : body) as {
    readonly id?: unknown;
    readonly method?: string;
  };
  const answer = (result: string): Answer => ({
    body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`,
  });
  if (id === undefined) return { status: 202, body: '' };
  if (what === 'server/discover')
    return path.endsWith('modern')
      ? answer(
          `{"supportedVersions":["2026-07-28"],"capabilities":${CAPABILITIES},"serverInfo":{"name":"s","version":"1"},"resultType":"complete"}`,
        )
      : { body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"no"}}` };
  if (what === 'initialize')
    return answer(
      `{"protocolVersion":"2025-11-25","capabilities":${CAPABILITIES},"serverInfo":{"name":"s","version":"1"}}`,
    );
  if (what === 'tools/list')
    return answer('{"resultType":"complete","tools":[{"name":"read","inputSchema":{"type":"object"}}]}');
  return answer('{"resultType":"complete"}');
};

/** The card of an agent, in its own version. */
function card(path: string): string {
  const shared = {
    name: 'a',
    description: 'a',
    version: '1',
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  };
  return JSON.stringify(
    path.includes('rest')
      ? {
          ...shared,
          supportedInterfaces: [{ url: `${origin}/agents/rest`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }],
        }
      : { ...shared, protocolVersion: '0.3.0', url: `${origin}/agents/agent`, preferredTransport: 'JSONRPC' },
  );
}

let origin = '';
export const setOrigin = (url: string): void => {
  origin = url;
};
