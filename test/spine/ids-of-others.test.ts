import { afterAll, beforeAll, expect, test } from 'vitest';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import type { NewKeyFields } from '#auth/keys';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { startImageProvider, imageBlock, type ImageProvider } from '../media/support/image-provider.ts';
import { requestOf, WIRES } from '../peers/wires.ts';
import { agentBlock, startAgent, type Agent } from '../support/a2a-agent/index.ts';
import { idPlacesOf, placeName, type IdPlace, type OpenApi } from '../support/id-places.ts';
import { fill } from '../support/route-table.ts';
import { ask, MODEL, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';
import { readOpenApi } from '../support/open-api.ts';

/*
 * Every place of a request that may hold an id, from the routes of the running gateway and its description. Whoever may
 * not see a thing gets at each of them the very answer of an id that nobody has. A new place has to be named here.
 */

/** The kinds of things that have an id, and how a key begins one, or the account gets one. */
const KINDS = {
  video: async (key: string) => {
    const body = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
    return ((await (await post('/video/queue', body, key)).json()) as { id: string }).id;
  },
  response: async (key: string) => {
    const answer = await post('/responses', { model: MODEL, input: 'hi !tokens:1', max_output_tokens: 50 }, key);
    return ((await answer.json()) as { id: string }).id;
  },
  'background response': async (key: string) => {
    const body = { model: MODEL, input: 'hi !head-delay:forever', max_output_tokens: 50, background: true };
    return ((await (await post('/responses', body, key)).json()) as { id: string }).id;
  },
  generation: async (key: string) => {
    const response = await post('/chat/completions', ask('hi !tokens:1'), key);
    await response.text();
    return response.headers.get('x-generation-id')!;
  },
  'agent task': async (key: string) => (await agentTask(key)).id,
  key: async (_key: string, account: string) => {
    const { text, record } = (await spine.app.keys.create({ account, label: 'canary', kind: 'live' }))!;
    await (await post('/chat/completions', ask('hi !tokens:1'), text)).text();
    return record.hash;
  },
  'browser session': async (_key: string, account: string) => {
    const { text } = (await spine.app.keys.create({ account, label: 'canary', kind: 'live' }))!;
    const signedIn = await fetch(`${spine.url}/auth/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-tollgate-web': '1' },
      body: JSON.stringify({ api_key: text }),
    });
    return ((await signedIn.json()) as { id: string }).id;
  },
  movement: async (_key: string, account: string) => {
    const reference = `movement-${(made += 1)}`;
    const answer = await fetch(`${spine.origin}/admin/v1/accounts/${encodeURIComponent(account)}/credit`, {
      method: 'POST',
      headers: { authorization: `Bearer ${spine.adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ amount_usd: 1, reference }),
    });
    expect(answer.status).toBe(200);
    return `credit:${reference}`;
  },
  'image quote': async (key: string) => {
    const answer = await post('/image/generate/quote', IMAGE, key);
    return ((await answer.json()) as { quote_id: string }).quote_id;
  },
  'video quote': async (key: string) => {
    const answer = await post('/video/quote', VIDEO, key);
    return ((await answer.json()) as { quote_id: string }).quote_id;
  },
  file: async (key: string) => {
    const form = new FormData();
    const line = {
      custom_id: `line-${(made += 1)}`,
      method: 'POST',
      url: '/v1/chat/completions',
      body: ask('hi !tokens:1'),
    };
    form.set('purpose', 'batch');
    form.set('file', new Blob([JSON.stringify(line)]), 'canary.jsonl');
    const answer = await fetch(`${spine.url}/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    });
    return ((await answer.json()) as { id: string }).id;
  },
  batch: async (key: string): Promise<string> => {
    const batch = { endpoint: '/v1/chat/completions', completion_window: '24h' };
    const answer = await post('/batches', { ...batch, input_file_id: await KINDS.file(key) }, key);
    return ((await answer.json()) as { id: string }).id;
  },
  approval: async (_key: string, account: string) => {
    const { text } = (await spine.app.keys.create({ account, label: 'asking', kind: 'live', askAbove: 0n }))!;
    const answer = await post('/chat/completions', ask(`canary ${(made += 1)}`), text);
    return ((await answer.json()) as { approval: { id: string } }).approval.id;
  },
  'chat quote': async (key: string) => {
    const answer = await post('/quotes', { primitive: 'model', ...ask('hi !tokens:1') }, key);
    return ((await answer.json()) as { quote_id: string }).quote_id;
  },
} satisfies Record<string, (key: string, account: string) => Promise<string>>;
type Kind = keyof typeof KINDS;

/** Things that only a whole account has. */
const OF_THE_ACCOUNT: ReadonlySet<Kind> = new Set(['key', 'browser session', 'movement', 'approval']);

const IMAGE = { model: 'test/painter', prompt: 'A tollgate' };
const VIDEO = { model: 'test/film', prompt: 'A tollgate', duration: '4s' };
const AGENT = 'a2a/test/agent';
/** The path of a wire, and of all methods of a model where its address names one. */
const patternOf = (path: string) => path.replace(/\{model\}:\w+$/, '\\{model\\}:(?!countTokens)\\w+');

/** What each place holds, and the rest of its request. `later`: its owner sees something only some time later. */
const PLACES: readonly {
  readonly places: RegExp;
  readonly kind: Kind;
  readonly body?: object;
  readonly later?: true;
}[] = [
  { places: /^(GET|DELETE) \/api\/v1\/videos\/:id(\/content)? path id$/, kind: 'video' },
  { places: /^POST \/api\/v1\/video\/(retrieve|cancel) body task_id$/, kind: 'video' },
  { places: /^(GET|DELETE) \/api\/v1\/responses\/:response_id(\/input_items)? path response_id$/, kind: 'response' },
  { places: /^POST \/api\/v1\/responses\/:response_id\/cancel path response_id$/, kind: 'background response' },
  {
    places: /^POST \/api\/v1\/responses(\/compact)? body previous_response_id$/,
    kind: 'response',
    body: { model: MODEL, input: 'hi !tokens:1', max_output_tokens: 50 },
  },
  { places: /^(GET|DELETE) \/api\/v1\/files\/:file_id(\/content)? path file_id$/, kind: 'file' },
  { places: /^GET \/api\/v1\/batches\/:batch_id path batch_id$/, kind: 'batch' },
  { places: /^POST \/api\/v1\/batches\/:batch_id\/cancel path batch_id$/, kind: 'batch', body: {} },
  {
    places: /^POST \/api\/v1\/batches body input_file_id$/,
    kind: 'file',
    body: { endpoint: '/v1/chat/completions', completion_window: '24h' },
  },
  { places: /^GET \/api\/v1\/generation query id$/, kind: 'generation' },
  { places: /^POST \/api\/v1\/approvals\/:id path id$/, kind: 'approval', body: { decision: 'refuse' } },
  { places: /^(GET|DELETE) \/api\/v1\/keys\/:hash path hash$/, kind: 'key' },
  { places: /^PATCH \/api\/v1\/keys\/:hash path hash$/, kind: 'key', body: { name: 'stolen' } },
  { places: /^POST \/api\/v1\/keys\/:hash\/rotate path hash$/, kind: 'key', body: {} },
  { places: /^GET \/api\/v1\/generations query key$/, kind: 'key' },
  { places: /^GET \/api\/v1\/analytics\/own query key$/, kind: 'key', later: true },
  { places: /^GET \/api\/v1\/activity query api_key_hash$/, kind: 'key', later: true },
  { places: /^DELETE \/api\/v1\/auth\/sessions\/:id path id$/, kind: 'browser session' },
  { places: /^GET \/api\/v1\/movements query before$/, kind: 'movement' },
  ...WIRES.map((wire) => ({
    places: new RegExp(`^POST ${patternOf(wire.path)} body tollgate\\.task_id$`),
    kind: 'agent task' as const,
    body: requestOf(wire, { model: AGENT, ...wire.ask('hello', 9) }).body,
  })),
  {
    places: /^POST \/api\/v1\/(image\/generate|images\/generations) (header x-quote-id|body quote_id)$/,
    kind: 'image quote',
    body: IMAGE,
  },
  {
    places: /^POST \/api\/v1\/(video\/queue|videos) (header x-quote-id|body quote_id)$/,
    kind: 'video quote',
    body: VIDEO,
  },
  {
    places: /^POST \/api\/v1\/chat\/completions header x-quote-id$/,
    kind: 'chat quote',
    body: ask('hi !tokens:1'),
  },
];

/** Places that look like the place of an id and hold none, or one that is tested elsewhere. */
const OTHERS: readonly { readonly why: string; readonly places: RegExp }[] = [
  { why: "the operator's: an account's key is refused", places: /^\w+ \/admin\/v1\// },
  { why: 'versions of prices, which are public', places: /^GET \/api\/v1\/prices\/:id path id$/ },
  { why: 'pages and files, the same for everybody', places: /^GET \/(docs|dashboard|assets|authorize)\// },
  {
    why: 'names of services and providers, which are public',
    places:
      /^GET \/(api\/v1(beta)?\/)?(models|model|tools|agents|images|videos|providers|services|analytics\/service)\/.*path (\*|author|slug|primitive|id|model)$/,
  },
  {
    why: 'a name of a service, and ids below it: see "MCP" and "A2A"',
    places: /^\w+ (\/api\/v1)?\/(mcp|a2a)\/\*.* path \*$/,
  },
  { why: 'an id that the client makes up for this one request', places: /header x-request-id$|body (\[\]\.)?id$/ },
  { why: 'see peer-primitives.test.ts', places: /header idempotency-key$/ },
  { why: 'a word of the client that keeps it at one provider', places: /(header x-session-id|body session_id)$/ },
  { why: 'a client may make up a context: see "contexts of agents"', places: /body tollgate\.context_id$/ },
  { why: 'in answers only', places: /body tollgate\.state$/ },
  {
    why: 'counts without a call',
    places:
      /^POST \/api\/(v1\/(messages\/count_tokens|responses\/input_tokens)|v1beta\/models\/\{model\}:countTokens) /,
  },
  { why: 'a hint for the provider', places: /body prompt_cache_key$/ },
  {
    why: 'the configuration of a session, which has no id',
    places: /^POST \/api\/v1\/realtime\/client_secrets body session$/,
  },
  { why: 'a voice of the provider', places: /^POST \/api\/v1\/audio\/speech body voice\.id$/ },
  {
    why: 'items of kept responses: see kept-responses.test.ts',
    places: /^POST \/api\/v1\/responses(\/compact)? body input\.\[\]\.id$/,
  },
  { why: 'a call in the conversation that the client sends', places: /body messages\.\[\]\.tool_call_id$/ },
  { why: 'a state of calls', places: /^GET \/api\/v1\/generations query state$/ },
  {
    why: 'a credential',
    places: /^POST \/api\/v1\/(auth\/session body api_key|provider-keys body key)$/,
  },
  {
    why: 'a provider, which is no secret: keys are found by account, see own-keys.test.ts',
    places: /^DELETE \/api\/v1\/provider-keys\/:provider path provider$/,
  },
  {
    why: 'the number of a place in a list of own or public things',
    places:
      /^GET \/api\/v1\/((videos|files|batches) query after|responses\/:response_id query starting_after|responses\/:response_id\/input_items query after|(generations|provider\/calls) query cursor|models(\/user)? query (after|before)_id)$/,
  },
  { why: 'a time', places: /body (output_)?expires_after$/ },
  { why: 'a month', places: /\/statements\/:month(\/focus)? path month$/ },
  { why: 'an account that becomes a member: an account is no secret', places: /members body account$/ },
  { why: 'members, by their accounts: see organisations.test.ts', places: /members\/:member path member$/ },
  {
    why: 'money on chains, see test/console/pages/funds: restricted keys are refused',
    places: /\/(deposits|withdrawals|wallets)(\/:id(\/\w+)?)? (path id|query before)$/,
  },
  { why: 'sessions of MCP: see "MCP"', places: /^\w+ \/mcp(\/:name)? header mcp-session-id$/ },
  {
    why: 'a quote that is asked for has no quote; all doors of calls read quotes in one place',
    places:
      /quote body quote_id$|^POST (\/mcp|\/mcp\/:name|\/a2a|\/a2a\/:name|\/api\/v\d\/(rpc|responses\/compact|images|image\/edit|images\/edits)) (header x-quote-id|body quote_id)$/,
  },
  {
    why: 'the same of the wires beside chat, and of models that do not chat',
    places: new RegExp(
      `^POST (${WIRES.map(({ path }) => patternOf(path))
        .filter((path) => !path.endsWith('/chat/completions'))
        .concat(KINDS_OF_MODELS.flatMap(([, { paths }]) => paths.map((path) => `/api/v\\d${path}`)))
        .join('|')}) (header x-quote-id|body quote_id)$`,
    ),
  },
];

let spine: Spine;
let videos: VideoProvider;
let images: ImageProvider;
let agent: Agent;
let places: readonly IdPlace[];
let made = 0;
/** Of the account whose things they are: a key without restrictions, and one with a limit. */
let owners: Record<'whole' | 'limited', string>;
/** Those who may see nothing of it. */
let askers: readonly { readonly who: string; readonly key: string }[];
const ACCOUNT = 'owner';
let account: string;

beforeAll(async () => {
  [videos, images, agent] = await Promise.all([
    startVideoProvider(),
    startImageProvider(),
    startAgent({ version: 'both' }),
  ]);
  videos.begin(() => ({ status: 'in_progress' }));
  spine = await startSpine({
    toml:
      `${UNHURRIED}[media]\nfree_bytes_min = 0\n` +
      videoBlock({ url: videos.url }) +
      imageBlock({ name: IMAGE.model, url: images.url }) +
      agentBlock({ name: 'test/agent', endpoint: agent.url }),
  });
  const keyWith = async (fields: Partial<NewKeyFields> = {}, of = ACCOUNT) => spine.tenant(of, '0', fields);
  ({ account } = await spine.tenant(ACCOUNT, '50'));
  owners = { whole: (await keyWith()).key, limited: (await keyWith({ limit: 20_000_000n })).key };
  const all = [MODEL, 'test/film', 'test/painter', 'test/agent'];
  const stranger = await spine.tenant('stranger', '50');
  askers = await Promise.all(
    (
      [
        ['a key with a spending limit', { limit: 20_000_000n }],
        ['a key with a rate', { requestsPerMinute: 100_000 }],
        ['a key with an expiry', { expiresAt: Date.now() + 86_400_000 }],
        ['a key that may use the services', { allowedServices: all }],
        ['a key that may use another service', { allowedServices: ['test/other'] }],
      ] as const
    ).map(async ([who, fields]) => ({ who, key: (await keyWith(fields)).key })),
  );
  askers = [...askers, { who: 'another account', key: stranger.key }];
  const document = await readOpenApi<OpenApi>(spine.origin);
  places = idPlacesOf(spine.app.server, document);
});
afterAll(async () => {
  for (const job of videos.jobs.values()) job.status = 'failed';
  await spine.stop();
  await Promise.all([videos.close(), images.close(), agent.close()]);
});

const post = (path: string, body: unknown, key: string) => spine.post(path, body, { authorization: `Bearer ${key}` });

async function agentTask(key: string): Promise<{ readonly id: string; readonly contextId: string }> {
  made += 1;
  const message = { kind: 'message', messageId: `m-${made}`, role: 'user', parts: [{ kind: 'text', text: 'wait' }] };
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: { message, configuration: { blocking: false } },
  };
  const response = await fetch(`${spine.origin}/a2a/test/agent`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return ((await response.json()) as { result: { id: string; contextId: string } }).result;
}

const unknownLike = (id: string) => id.replaceAll(/[0-9a-f]/g, (one) => (one === '0' ? '1' : '0'));

/** The request with this id at the place. The answer is without the id, and without what each answer has anew. */
async function asks(place: IdPlace, id: string, key: string, body: object = {}) {
  const { method, path, where, name } = place;
  const [first, second] = name.split('.') as [string, string?];
  const sent = where === 'body' ? { ...body, [first]: second === undefined ? id : { [second]: id } } : body;
  const query = where === 'query' ? `?${new URLSearchParams({ [name]: id }).toString()}` : '';
  const withBody = method === 'POST' || method === 'PATCH';
  const response = await fetch(spine.origin + fill(path, { model: AGENT, [name]: id }) + query, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(withBody ? { 'content-type': 'application/json' } : {}),
      ...(where === 'header' ? { [name]: id } : {}),
    },
    ...(withBody ? { body: JSON.stringify(sent) } : {}),
  });
  const text = (await response.text())
    .replaceAll(id, '<id>')
    .replaceAll(/(?:gen|req)-[\w-]+|[0-9a-f]{8}-[0-9a-f-]{27}/g, '<new>')
    // Calls may be added up between two requests.
    .replaceAll(/"as_of":"[^"]*"/g, '"as_of":"<time>"');
  return { status: response.status, text };
}

const entryOf = (place: IdPlace) => PLACES.find((one) => one.places.test(placeName(place)));

test('every place of an id is known, and what is named here exists', () => {
  const names = places.map(placeName);
  expect(names.filter((name) => ![...PLACES, ...OTHERS].some((one) => one.places.test(name)))).toEqual([]);
  for (const one of [...PLACES, ...OTHERS])
    expect(names.filter((name) => one.places.test(name)).length, String(one.places)).toBeGreaterThan(0);
});

const CASES = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
  (OF_THE_ACCOUNT.has(kind) ? (['whole'] as const) : (['whole', 'limited'] as const)).map((owner) => ({ kind, owner })),
);

test.each(CASES)('$kind of a key: $owner', async ({ kind, owner }) => {
  const id = await KINDS[kind](owners[owner], account);
  expect(typeof id).toBe('string');
  const nobodys = unknownLike(id);
  const own = places.filter((place) => entryOf(place)?.kind === kind);
  expect(own.length).toBeGreaterThan(0);
  for (const place of own) {
    const { body } = entryOf(place)!;
    for (const { who, key } of askers) {
      const answer = await asks(place, id, key, body);
      const what = `${placeName(place)} by ${who}`;
      expect(answer, what).toEqual(await asks(place, nobodys, key, body));
    }
  }
  // The owner gets another answer, so the requests ask for what they seem to ask for.
  for (const place of own) {
    const { body, later } = entryOf(place)!;
    if (later) continue;
    const fresh = await KINDS[kind](owners[owner], account);
    const answer = await asks(place, fresh, owners[owner], body);
    expect(answer, placeName(place)).not.toEqual(await asks(place, nobodys, owners[owner], body));
  }
});
