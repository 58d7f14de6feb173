import { Ajv } from 'ajv';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { imageBlock, type ImageProvider, png, startImageProvider } from '../media/support/image-provider.ts';
import { wavFile } from '../openai/audio/support/audio-files.ts';
import { startVideoProvider, videoBlock, type VideoProvider } from '../media/support/video-provider.ts';
import { startWireUpstream, type WireUpstream } from '../openai/native/support/wire-upstream.ts';
import { anyOfSchema } from '../support/any-of-schema.ts';
import { readOpenApi } from '../support/open-api.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// /openapi.json allows nothing that the gateway refuses for its form: requests that are made of the schemas of the
// document alone are not invalid.

type Schema = Readonly<Record<string, unknown>>;
type Members = Readonly<Record<string, unknown>>;
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly schema: Schema;
  }[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: Members }>>;
  };
}
interface Asked {
  readonly path: Members;
  readonly query: Members;
  readonly header: Members;
  readonly body?: unknown;
}

const DEEP = process.env['TOLLGATE_DEEP'] === '1';
const REQUESTS = DEEP ? 300 : 12;
/** Rules that forbid something are not looked at when a request is made, so some are not valid. */
const TRIES = 6;

const OF_PARAMETERS = 'A document says nothing of two parameters together.';
const QUOTED_BY = KINDS_OF_MODELS.flatMap(([, { quotedBy = [] }]) => quotedBy);
/** What a schema cannot say, by the words of the refusal, and the operation if it is of one alone. */
const EXCEPTIONS: readonly (readonly [words: RegExp, reason: string, operation?: string])[] = [
  [/^An archive is being made already/, 'It is of the request before.'],
  [/^Previous response with id|must be the .* of (?:another|a) page|in this list|of this list/, 'It is of an answer.'],
  [/^A notification needs the Mcp-Session-Id/, 'A schema does not join a body and a header.'],
  [/^This request came without a session cookie/, 'Only a browser has a cookie.'],
  [
    /^Send only one of type and|^Name a vendor, or|^schemas needs service|works only with JSON|^starting_after needs/,
    OF_PARAMETERS,
  ],
  [
    /^start_date is after|^Request at most 366 days|^from must not be after|one of the last 30 days|is another name of/,
    OF_PARAMETERS,
  ],
  [/^group_by accepts either/, 'No schema of a text with commas compares its words.'],
  [/ has not begun in /, 'No pattern knows the time.'],
  [/ must name a host of the public internet/, 'No pattern knows which hosts are public.'],
  [/^tags has another=|contains invisible characters/, 'No pattern of the document has classes of Unicode.'],
  [/^stream needs the response_format/, 'Generators make no class of members that need another.'],
  [/^input\[\d+\]\.output\.image_url must be/, 'Items of a conversation have one schema for all kinds.'],
  [/^aspect_ratio must be from|is larger than 4k/, 'No pattern compares or multiplies two numbers.'],
  [/ file, as its bytes show$/, 'No schema looks into a file.'],
  [/is the same input as another|^Two budgets have|^image_count is/, 'It counts members of one kind.'],
  [/must be the name of one of mcp_servers$/, 'It names another part of the body.'],
  [/^allowed_services\S* (?:must|may|takes away)/, 'Its errors say more than a pattern of the schema would.'],
  [/^messages must be at least one message|^input must be a text, or items/, 'Parts of unknown kinds are left out.'],
  [
    /^generationConfig\.response(?:MimeType|JsonSchema) must be/,
    'Generators make no class of members that need another.',
  ],
  [/one outputDimensionality for all$|^input must be a text, an array of 1 to 2048 texts/, 'It compares members.'],
  [
    new RegExp(
      `^(?:messages|duration|seconds|${QUOTED_BY.join('|')})\\S* (?:must be|is required|and duration have different)`,
    ),
    'The body of a quote is that of the call.',
    'post /api/v1/quotes',
  ],
  [/^input\[\d+\] is of type compaction\w*, which only providers/, 'No schema knows the providers of a model.'],
  [
    /^\/responses\/compact needs a provider that compacts/,
    'No schema knows the providers of a model.',
    'post /api/v1/responses/compact',
  ],
];

/** Headers that are the same for many operations, and have tests of their own. */
const OF_ALL = new Set(
  'idempotency-key payment-signature x-max-cost x-quote-id x-receipt x-request-id x-session-id'.split(' '),
);
/** An account may limit its own rate, and meets the limit at its next request. */
const SETS_RATES = '/api/v1/limits';

const PICTURE = `data:image/png;base64,${png(64, 64).toString('base64')}`;
const ACCOUNTS = [
  'eip155:8453:0x71c7656ec7ab88b098defb751b7401b5f6d8976f',
  'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp:GThUX1Atko4tqhN2NaiTazWSeFWMuiUvfFnyJyUghFMJ',
  'tollgate:local:somebody',
  'oauth:issuer_example_com:user-1',
];

/** Schemas of texts that stand for something that has to be right in itself, with texts that are. */
function withStandIns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withStandIns);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { pattern, format } = schema as Schema;
  if (typeof pattern === 'string' && pattern.includes('base64,')) return { enum: [PICTURE] };
  // A host may be private, which no pattern tells.
  if (pattern === '^https://[^\\s]') return { enum: ['https://files.example.com/a.pdf'] };
  if (typeof pattern === 'string' && pattern.includes('tollgate:local')) return { enum: ACCOUNTS };
  if (format === 'date-time') return { enum: ['2090-01-31T12:00:00Z', '2091-12-31T00:00:00.5+01:00'] };
  return Object.fromEntries(Object.entries(schema).map(([name, inner]) => [name, withStandIns(inner)]));
}

let compacting: WireUpstream;
let painter: ImageProvider;
let filmer: VideoProvider;
let spine: Spine;
let operations: {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}[];
beforeAll(async () => {
  painter = await startImageProvider();
  filmer = await startVideoProvider();
  compacting = await startWireUpstream();
  compacting.answer = () => ({ text: COMPACTED });
  const media = imageBlock({ url: painter.url, params: 'edits = true' }) + videoBlock({ url: filmer.url });
  const native = modelBlock({ name: NATIVE, provider: 'Native', url: compacting.url, params: 'wires = ["responses"]' });
  spine = await startSpine({ toml: `${UNHURRIED}[media]\nfree_bytes_min = 0\n${media}${native}` });
  const { paths } = await readOpenApi<{
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  }>(spine.origin);
  operations = Object.entries(paths).flatMap(([path, of]) =>
    Object.entries(of).map(([method, operation]) => ({ name: `${method} ${path}`, method, path, operation })),
  );
});
afterAll(async () => {
  expect(await spine.faults()).toEqual([]);
  await spine.stop();
  await compacting.stop();
  await painter.close();
  await filmer.close();
});

/** The schema of all that a request has, and the values that its example has for what is looked up. */
function requestSchema({ operationId, parameters, requestBody }: Operation) {
  const placed = (place: string) => {
    const own = parameters.filter((one) => one.in === place && !OF_ALL.has(one.name.toLowerCase()));
    return {
      type: 'object',
      additionalProperties: false,
      required: own.filter((one) => one.required).map(({ name }) => name),
      properties: Object.fromEntries(own.map(({ name, schema }) => [name, schema])),
    };
  };
  const { schema: body, example: documented = {} } = bodyOf(requestBody) ?? {};
  const example = operationId === 'compactResponse' ? { ...documented, model: NATIVE } : documented;
  const properties = { path: placed('path'), query: placed('query'), header: placed('header') };
  return {
    schema: {
      type: 'object',
      required: [...Object.keys(properties), ...(body === undefined ? [] : ['body'])],
      properties: { ...properties, ...(body === undefined ? {} : { body }) },
    },
    example,
  };
}

/** The body of an operation: JSON, or a form where it takes no JSON. */
const bodyOf = (body: Operation['requestBody']) => body?.content['application/json'] ?? body?.content[FORM];

const FORM = 'multipart/form-data';

/** A body as it is sent. A file of a form has sound, because that is looked into. */
function written(body: unknown, { requestBody }: Operation): string | FormData {
  if (requestBody?.content['application/json'] !== undefined) return JSON.stringify(body);
  const form = new FormData();
  for (const [name, value] of Object.entries(body as Members)) {
    // A form has no null.
    if (value === null) continue;
    if (name === 'file') form.append(name, new File([new Uint8Array(wavFile(0.1))], 'a.wav'));
    else if (Array.isArray(value)) for (const one of value) form.append(`${name}[]`, String(one));
    else form.append(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  return form;
}

/** Only a model of a native provider compacts, so half of those requests name one. */
const NATIVE = 'acme/native';
const COMPACTED = JSON.stringify({
  id: 'resp_1',
  object: 'response.compaction',
  output: [],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
});

const LOOKED_UP = ['model', 'messages', 'prompt', 'input'];

/** Valid requests: half of them as they come, half with the model and the prompt of the example. */
function requestsOf(operation: Operation): readonly Asked[] {
  const { schema, example } = requestSchema(operation);
  const ajv = new Ajv({ strict: false, validateFormats: false });
  const isValid = ajv.compile<Asked>(schema);
  const made = fc.sample(anyOfSchema(withStandIns(schema) as Schema), { seed: 1, numRuns: REQUESTS * TRIES });
  return (made as readonly Asked[])
    .filter((one) => isValid(one))
    .slice(0, REQUESTS)
    .map((one, index) => {
      if (index % 2 === 0 || typeof one.body !== 'object' || one.body === null) return one;
      const body = { ...one.body } as Record<string, unknown>;
      for (const name of LOOKED_UP)
        if (Object.hasOwn(body, name) && Object.hasOwn(example, name)) body[name] = example[name];
      return isValid({ ...one, body }) ? { ...one, body } : one;
    });
}

/** The address with its parameters; null if no client can ask for it, such as one whose name is two full stops. */
function addressOf(path: string, { path: names, query }: Asked): string | null {
  const asked = path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => encodeURIComponent(String(names[name])));
  const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)])).toString();
  const url = `${spine.origin}${asked}${text === '' ? '' : `?${text}`}`;
  return new URL(url).pathname === asked ? url : null;
}

/** What the gateway finds wrong with the form of a request; null for nothing. A stream may be lines of JSON. */
function faultOf({ status, headers }: Response, text: string): string | null {
  const isWhole = headers.get('content-type')?.startsWith('application/json') === true;
  const { error } = (isWhole ? JSON.parse(text) : {}) as {
    readonly error?: { readonly code?: unknown; readonly message?: string };
  };
  const { code, message = text } = error ?? {};
  return status === 400 || code === -32600 || code === -32602 ? message : null;
}

test('what the document allows is taken', async () => {
  const refused: string[] = [];
  const used = new Set<RegExp>();
  for (const [index, { name, method, path, operation }] of operations.entries()) {
    const tenant = async (more: string) => (await spine.tenant(`tenant-${index}${more}`, '100')).key;
    const key = path.startsWith('/admin/') || path === '/metrics' ? spine.adminKey : await tenant('');
    const requests = requestsOf(operation);
    expect(requests.length, name).toBeGreaterThan(Math.min(REQUESTS, 4) - 1);
    for (const [at, asked] of requests.entries()) {
      const url = addressOf(path, asked);
      if (url === null) continue;
      const own = path === SETS_RATES ? await tenant(`-${at}`) : key;
      const headers = Object.entries(asked.header).map(([header, value]) => [header, String(value)] as const);
      const response = await fetch(url, {
        method: method.toUpperCase(),
        headers: {
          ...Object.fromEntries(headers),
          authorization: `Bearer ${own}`,
          ...(asked.body === undefined || bodyOf(operation.requestBody) === operation.requestBody?.content[FORM]
            ? {}
            : { 'content-type': 'application/json' }),
        },
        ...(asked.body === undefined ? {} : { body: written(asked.body, operation) }),
      });
      const fault = faultOf(response, await response.text());
      const exception =
        fault === null ? null : EXCEPTIONS.find(([words, , of = name]) => of === name && words.test(fault));
      if (exception === undefined)
        refused.push(`${name}: ${fault}\n  ${url} ${JSON.stringify(asked.body)}`.slice(0, 600));
      else if (exception !== null) used.add(exception[0]);
    }
  }
  expect(refused).toEqual([]);
  expect(compacting.reached.map(({ path }) => path)).toContain('/v1/responses/compact');
  if (DEEP) expect(EXCEPTIONS.filter(([words]) => !used.has(words)).map(([words]) => String(words))).toEqual([]);
});
