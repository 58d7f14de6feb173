import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { ENGINES } from '../support/engines.ts';
import { freshDatabase } from '../support/fresh-database.ts';
import { readOpenApi } from '../support/open-api.ts';
import { startRawMcp, type RawMcp } from '../support/raw-mcp.ts';
import { ask, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// PostgreSQL keeps no text with U+0000, and no JSON that names it can be parsed there. Whoever sends one is told so, or
// it is kept where it does no harm: no member of any request makes the gateway fail, then or later.

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly example?: unknown }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly example?: unknown }>>;
  };
}
type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>;

const ODD: readonly string[] = ['a\u0000b', 'a\ud800b'];
const LONG = 'x'.repeat(1024 * 1024);
/** The accounts of the other cases are not to be limited, and the process not to be stopped. */
const OWN_ACCOUNT = /\/(limits|keys|members|accounts|rotate)/;

/** The body with another text in each of its texts, and with another name for each of its members. */
function* changed(body: unknown, text: string): Generator {
  if (typeof body === 'string') yield text;
  if (typeof body !== 'object' || body === null) return;
  for (const [name, value] of Object.entries(body)) {
    for (const other of changed(value, text)) yield Array.isArray(body) ? [other] : { ...body, [name]: other };
    if (!Array.isArray(body) && text.length < 10) {
      const { [name]: _gone, ...rest } = body as Record<string, unknown>;
      yield { ...rest, [text]: value };
    }
  }
}

describe.each(ENGINES)('texts that not every database stores, on %s', (engine) => {
  let spine: Spine;
  let tools: RawMcp;
  let drop = async () => {};
  beforeAll(async () => {
    const fresh = engine === 'postgres' ? await freshDatabase(inject('postgresUrl')) : null;
    if (fresh) drop = () => fresh.drop();
    tools = await startRawMcp(
      async () => '{"resultType":"complete","content":[{"type":"text","text":"noon"}]}',
      ['{"name":"hour","inputSchema":{"type":"object"}}'],
    );
    const toml = `${UNHURRIED}[[tools]]\nname = "kit"\ndisplay_name = "Kit"\nprovider_name = "Kit"\nendpoint = "${tools.url}"\n[tools.pricing]\nper_call = 0.001\n`;
    spine = await startSpine({ ...(fresh ? { databaseUrl: fresh.url } : {}), toml });
  });
  afterAll(async () => {
    await spine.stop();
    await drop();
    await tools.close();
  });

  const headersOf = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });
  const send = async (method: string, url: string, key: string, body?: unknown) => {
    const headers = headersOf(key);
    const answer = await fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    return { status: answer.status, text: await answer.text() };
  };
  const failed = ({ status, text }: { readonly status: number; readonly text: string }) =>
    status === 500 || text.includes('"code":-32603') || text.includes('Internal error');

  /** What has to go on, whatever was sent: calls with and without tags, reads, budgets of tags and figures. */
  const works = async (key: string) => {
    const tagged = { ...headersOf(key), 'x-tollgate-tags': 'team=blue' };
    const budgets = (tag_budgets: object[]) => send('PATCH', `${spine.url}/limits`, key, { tag_budgets });
    const statuses = [
      (await spine.post('/chat/completions', ask('hello'), headersOf(key))).status,
      (await budgets([{ tag: 'team=blue', limit: 1, limit_reset: 'monthly' }])).status,
      (await spine.post('/chat/completions', ask('hello'), tagged)).status,
      (await budgets([])).status,
    ];
    for (const path of ['/key', '/limits', '/credits', '/generations', '/analytics/own?group_by=tag:team'])
      statuses.push((await spine.get(path, headersOf(key))).status);
    expect(statuses).toEqual(statuses.map(() => 200));
  };

  it('a NUL in an id or a name is a request that is not valid', async () => {
    const name = { name: 'a\u0000b', arguments: {} };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: name };
    const { status, text } = await send('POST', `${spine.origin}/mcp/kit`, spine.key, call);
    expect([status, text]).toEqual([400, expect.stringContaining('has a control character')]);
    const keys = await Promise.all([
      send('POST', `${spine.url}/keys`, spine.key, { name: 'a\u0000b' }),
      ...(engine === 'postgres' ? [send('DELETE', `${spine.url}/keys/a%00b`, spine.key)] : []),
    ]);
    expect(keys.map((one) => one.status)).toEqual(keys.map(() => 400));
    await works(spine.key);
  });

  it('no label of any sort has characters that nobody sees', async () => {
    const { key, account } = await spine.tenant('labels', '5');
    const ofAccount = `/admin/v1/accounts/${encodeURIComponent(account)}`;
    for (const odd of ['\u001b[31m', '\u009b31m', '\u202egnp', '\u2066', '\u0000']) {
      const name = `a${odd}b`;
      const member = { account: 'tollgate:local:other', role: 'viewer', name };
      for (const [method, path, body, status] of [
        ['POST', '/api/v1/keys', { name }, 400],
        ['POST', '/api/v1/keys', { label: name }, 400],
        ['POST', `${ofAccount}/keys`, { name }, 400],
        ['POST', '/api/v1/organisations', { label: name }, 422],
        ['POST', '/api/v1/organisations', { label: 'Plain', name }, 400],
        ['POST', `${ofAccount}/members`, member, 400],
        ['PATCH', ofAccount, { label: name }, 422],
        ['POST', '/admin/v1/admin-keys', { label: name, roles: ['credit'] }, 400],
      ] as const) {
        const by = path.startsWith('/admin/') ? spine.adminKey : key;
        const answer = await send(method, `${spine.origin}${path}`, by, body);
        expect([path, JSON.stringify(name), answer.status, answer.text]).toEqual([
          path,
          JSON.stringify(name),
          status,
          expect.stringContaining('invisible characters'),
        ]);
      }
    }
  });

  it('no odd text in a call of a tool or an agent, at any door, makes a record that cannot be read', async () => {
    const { key } = await spine.tenant('callers', '5');
    const found: unknown[] = [];
    for (const odd of [...ODD, LONG]) {
      const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: odd, method, params });
      const message = { messageId: odd, contextId: odd, role: 'user', parts: [{ kind: 'text', text: odd }] };
      const asked = ask('hello', {
        user: odd,
        session_id: odd,
        prompt_cache_key: odd,
        metadata: { [odd]: odd, team: odd },
      });
      const chat = (model: string) => ['/api/v1/chat/completions', { ...asked, model }] as const;
      for (const [path, body] of [
        ['/mcp/kit', rpc('tools/call', { name: odd, arguments: { [odd]: odd } })],
        ['/mcp/kit', rpc('tools/call', { name: 'hour', arguments: { a: odd }, _meta: { [odd]: odd } })],
        ['/mcp', rpc('tools/call', { name: odd, arguments: {} })],
        ['/mcp', rpc('tools/call', { name: `kit__${odd}`, arguments: {} })],
        ['/mcp', rpc('tools/call', { name: 'call_tool', arguments: { name: `kit/${odd}`, arguments: {} } })],
        [`/a2a/${MODEL}`, rpc('message/send', { message })],
        [`/a2a/${MODEL}`, rpc('tasks/get', { id: odd })],
        ['/rpc', rpc('chat/completions', asked)],
        ['/rpc', rpc('tools/call', { name: `kit/${odd}`, arguments: {} })],
        chat(MODEL),
        chat(odd),
        chat(`mcp/kit/${odd}`),
        chat(`a2a/${odd}`),
        ['/api/v1/chat/completions', { ...asked, models: [odd, MODEL] }],
        ['/api/v1/chat/completions', { ...asked, tools: [{ type: 'mcp', service: odd }] }],
        ['/api/v1/messages', { ...asked, metadata: { user_id: odd } }],
        ['/api/v1/responses', { model: MODEL, input: odd, previous_response_id: odd }],
        [
          '/api/v1/responses',
          { model: MODEL, input: 'hello', store: true, metadata: { [odd]: odd }, safety_identifier: odd },
        ],
      ] as const) {
        const answer = await send(
          'POST',
          `${spine.origin}${path.startsWith('/rpc') ? `/api/v1${path}` : path}`,
          key,
          body,
        );
        if (failed(answer))
          found.push([path, JSON.stringify(body).slice(0, 200), answer.status, answer.text.slice(0, 200)]);
      }
      await works(key);
    }
    expect(found).toEqual([]);
  });

  it('no odd text in any member of a documented request, or in an address, fails', async () => {
    const { paths } = await readOpenApi<{ readonly paths: Paths }>(spine.origin);
    const found: unknown[] = [];
    const { key: caller } = await spine.tenant('documented', '5');
    let asked = 0;
    for (const [path, of] of Object.entries(paths))
      for (const [method, { parameters = [], requestBody }] of Object.entries(of)) {
        const own = OWN_ACCOUNT.test(path) ? (await spine.tenant(`own-${asked}`, '5')).key : caller;
        const key = path.startsWith('/admin/') || path === '/metrics' ? spine.adminKey : own;
        const at = (text: string) => path.replace(/\{\w+\}/g, encodeURIComponent(text.toWellFormed()));
        const example = requestBody?.content['application/json']?.example;
        for (const odd of [...ODD, LONG]) {
          const isShort = odd !== LONG;
          const requests: (readonly [string, unknown])[] = [...changed(example, odd)].map((body) => [at('none'), body]);
          if (isShort && path.includes('{')) requests.push([at(odd), example]);
          if (isShort)
            for (const one of parameters.filter((parameter) => parameter.in === 'query'))
              requests.push([`${at('none')}?${one.name}=${encodeURIComponent(odd.toWellFormed())}`, example]);
          for (const [address, body] of requests) {
            asked += 1;
            const answer = await send(
              method.toUpperCase(),
              `${spine.origin}${address}`,
              key,
              method === 'get' ? undefined : body,
            );
            if (failed(answer))
              found.push([
                method,
                address,
                JSON.stringify(body)?.slice(0, 200),
                answer.status,
                answer.text.slice(0, 200),
              ]);
          }
        }
      }
    expect(asked).toBeGreaterThan(500);
    expect(found).toEqual([]);
    await works(caller);
    await works(spine.key);
    expect(await spine.faults()).toEqual([]);
  });
});
