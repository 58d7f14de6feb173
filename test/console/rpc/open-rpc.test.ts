import { Ajv } from 'ajv';
import { beforeAll, expect, test } from 'vitest';
import { RPC_ERRORS } from '../../../src/console/rpc/errors-rpc.ts';
import { ask } from '../../support/spine.ts';
import { request, useRpcWorld } from './rpc-world.ts';

// rpc.discover: an OpenRPC 1.3 document of what is there.

interface Document {
  readonly openrpc: string;
  readonly info: { readonly title: string; readonly version: string; readonly license: object };
  readonly servers: readonly { readonly url: string }[];
  readonly methods: readonly Described[];
  readonly components: {
    readonly errors: Record<string, { readonly code: number; readonly message: string }>;
    readonly schemas?: Record<string, object>;
  };
}
interface Described {
  readonly name: string;
  readonly summary: string;
  readonly paramStructure: string;
  readonly params: readonly { readonly name: string; readonly required: boolean; readonly schema: object }[];
  readonly result: { readonly name: string; readonly schema: object };
  readonly errors?: readonly { readonly $ref: string }[];
}

const world = useRpcWorld();
let document: Document;
let text: string;
beforeAll(async () => {
  text = await (
    await fetch(`${world.spine.url}/rpc`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(request(1, 'rpc.discover')),
    })
  ).text();
  document = (JSON.parse(text) as { result: Document }).result;
});

const named = (name: string) => document.methods.find((method) => method.name === name)!;

/** Members that the specification of OpenRPC 1.3 has, by object; `!` marks those that must be there. */
const FORM = {
  document: ['openrpc!', 'info!', 'servers', 'methods!', 'components'],
  info: ['title!', 'description', 'termsOfService', 'version!', 'contact', 'license'],
  license: ['name', 'url'],
  method: [
    'name!',
    'description',
    'summary',
    'tags',
    'paramStructure',
    'params!',
    'result!',
    'errors',
    'links',
    'examples',
    'deprecated',
  ],
  descriptor: ['name!', 'description', 'summary', 'schema!', 'required', 'deprecated'],
  reference: ['$ref!'],
  error: ['code!', 'message!', 'data'],
  server: ['url!', 'name', 'description', 'summary', 'variables'],
} as const;

function expectForm(kind: keyof typeof FORM, value: object): void {
  const form: readonly string[] = FORM[kind];
  const names = form.map((name) => name.replace('!', ''));
  for (const name of Object.keys(value)) expect(names, `${kind} has no member ${name}`).toContain(name);
  for (const name of form.filter((one) => one.endsWith('!'))) expect(value).toHaveProperty(name.replace('!', ''));
}

test('it has the form of the specification', () => {
  expect(document.openrpc).toMatch(/^1\.3\.\d+$/);
  expectForm('document', document);
  expectForm('info', document.info);
  expectForm('license', document.info.license);
  expect(document.info).toMatchObject({ title: 'tollgate', version: expect.stringMatching(/^\d/) as string });
  for (const server of document.servers) expectForm('server', server);
  for (const method of document.methods) {
    expectForm('method', method);
    expectForm('descriptor', method.result);
    expect(method.paramStructure).toBe('by-name');
    for (const param of method.params) expectForm('descriptor', param);
    for (const error of method.errors ?? []) expectForm('reference', error);
    // Required parameters stand before those that are not.
    const required = method.params.map((param) => param.required);
    expect(required).toEqual(required.toSorted((a, b) => Number(b) - Number(a)));
    expect(new Set(method.params.map(({ name }) => name)).size).toBe(method.params.length);
  }
  expect(new Set(document.methods.map(({ name }) => name)).size).toBe(document.methods.length);
});

test('every reference leads somewhere', () => {
  const refs = [...text.matchAll(/"\$ref":"(#[^"]*)"/g)].map(([, ref]) => ref!);
  expect(refs.length).toBeGreaterThan(0);
  for (const ref of refs) {
    let at: unknown = document;
    for (const name of ref.slice(2).split('/')) at = (at as Record<string, unknown> | undefined)?.[name];
    expect(at, ref).toBeDefined();
  }
});

test('every error of this wire is described', () => {
  const described = Object.values(document.components.errors);
  for (const error of described) expectForm('error', error);
  const codes = described.map(({ code }) => code);
  expect(new Set(codes).size).toBe(codes.length);
  for (const { code } of Object.values(RPC_ERRORS)) expect(codes).toContain(code);
});

test('every schema compiles, and what is described is what is taken', () => {
  const ajv = new Ajv({ strict: false, validateFormats: false });
  for (const { params, result } of document.methods) {
    for (const { schema } of params) ajv.compile({ ...schema, components: document.components });
    ajv.compile({ ...result.schema, components: document.components });
  }
  const model = named('chat/completions').params.find(({ name }) => name === 'model')!;
  // Or `models` alone.
  expect(model.required).toBe(false);
  expect(named('chat/completions').params.find(({ name }) => name === 'messages')!.required).toBe(true);
  expect(ajv.validate(model.schema, ask('x').model)).toBe(true);
  expect(ajv.validate(model.schema, 7)).toBe(false);
  expect(named('chat/completions').params.map(({ name }) => name)).not.toContain('stream');
  expect(named('models/list').params.map(({ name }) => name)).toEqual([
    'type',
    'filter',
    'output_modalities',
    'offset',
    'limit',
    'after_id',
    'before_id',
  ]);
  expect(named('generation/get').params).toMatchObject([{ name: 'id', required: true }]);
  expect(named('account/balance').result.schema).toMatchObject({
    required: ['caip_account_id', 'balance_micro_usdc', 'balance_usd', 'locked_micro_usdc'],
  });
  // Not that of the page of one model, which begins with the same address.
  expect(named('models/endpoints').result.schema).toMatchObject({ $ref: '#/components/schemas/ModelEndpoints' });
});

test('what is listed is there, and what is there is listed', async () => {
  const names = document.methods.map(({ name }) => name);
  for (const name of [
    'services/list',
    'models/list',
    'models/endpoints',
    'chat/completions',
    'tools/list',
    'tools/call',
    'agents/list',
    'agents/get',
    'message/send',
    'SendMessage',
    'tasks/get',
    'GetTask',
    'tasks/list',
    'ListTasks',
    'tasks/cancel',
    'CancelTask',
    'account/balance',
    'account/credits',
    'account/key',
    'generation/get',
    'generations/list',
    'models/count',
    'models/user',
    'providers/list',
    'ping',
    'rpc.discover',
  ])
    expect(names).toContain(name);
  const replies = await world.batch(
    names.filter((name) => !name.startsWith('tasks/') && !/Task/.test(name)).map((name) => request(name, name, {})),
  );
  for (const { error } of replies) expect(error?.code).not.toBe(-32601);
});

test('it is the same each time, and in the reference of endpoints', async () => {
  expect(await world.call('rpc.discover')).toEqual(JSON.parse(text));
  const openApi = (await (await fetch(`${world.spine.origin}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { tags: string[] }>>;
  };
  expect(openApi.paths['/api/v1/rpc']!['post']).toMatchObject({
    tags: ['JSON-RPC'],
    summary: expect.any(String) as string,
  });
});
