import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KINDS_OF_MODELS } from '#config/model-kinds';
import { calledOf, snippetsOf } from '../../web/src/pages/offering/code.ts';
import { createServiceSearch } from '../../web/src/search/services.ts';
import { priceLines } from '../../web/src/ui/price-words.ts';
import { KINDS as WITH_ENDINGS } from '../spine/endings/kinds.ts';
import { modelBlock, startSpine, UNHURRIED, type Spine } from '../support/spine.ts';

// What follows from the table of kinds, and what it cannot make: a page, code to paste, words of a search and of a
// price, a row in the table of endings.

interface Schema {
  readonly required?: readonly string[];
  readonly $ref?: string;
}
interface Content {
  readonly schema: Schema;
  readonly example?: object;
}
interface Operation {
  readonly summary: string;
  readonly requestBody: { readonly content: Readonly<Record<string, Content>> };
  readonly responses: Readonly<Record<'200', { readonly content: object }>>;
}
interface Document {
  readonly paths: Readonly<Record<string, { readonly post?: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const CHAT = 'test/chat';
const nameOf = (kind: string) => `test/${kind}`;

let spine: Spine;
let document: Document;
beforeAll(async () => {
  const block = (name: string, lines = '') =>
    modelBlock({ name, provider: 'Nobody', url: 'http://127.0.0.1:9/v1' }).replace(
      'display_name',
      `${lines}display_name`,
    );
  const others = KINDS_OF_MODELS.map(([kind]) => block(nameOf(kind), `output_modalities = ["${kind}"]\n`));
  spine = await startSpine({ toml: [UNHURRIED, block(CHAT), ...others].join('\n') });
  document = (await (await fetch(`${spine.origin}/openapi.json`)).json()) as Document;
});
afterAll(() => spine.stop());

const DOCS = new URL('../../docs/', import.meta.url);
const PAGES = readdirSync(DOCS, { encoding: 'utf8', recursive: true }).filter(
  (file) => file.endsWith('.md') && !file.startsWith('decisions/'),
);
const textOf = (file: string) => readFileSync(new URL(file, DOCS), 'utf8');
/** The pages that tell what a route does. */
const pagesOf = (path: string) => PAGES.filter((file) => textOf(file).includes(`\`POST /api/v1${path}\``));

const messageOf = async (answer: Response) =>
  `${answer.status} ${((await answer.json()) as { readonly error: { readonly message: string } }).error.message}`;

describe.each(KINDS_OF_MODELS)('%s', (kind, facts) => {
  const { outputs, paths, summary, does, doesNot, method, quotedBy, perCall } = facts;
  const operation = () => document.paths[`/api/v1${paths[0]}`]!.post!;
  const content = () => Object.values(operation().requestBody.content)[0]!;
  const schema = () => {
    const named = content().schema;
    return named.$ref === undefined ? named : document.components.schemas[named.$ref.split('/').at(-1)!]!;
  };
  const isJson = () => Object.keys(operation().requestBody.content).join() === 'application/json';
  const example = (model: string) => ({ ...content().example, model });

  test('its name is the first word of its output', () => {
    expect(outputs[0]).toBe(kind);
  });

  test('its routes are there, each with a page', () => {
    expect(operation().summary).toBe(summary);
    for (const path of paths) {
      expect(document.paths, path).toHaveProperty([`/api/v1${path}`, 'post']);
      expect(pagesOf(path), `a page in docs/ tells what \`POST /api/v1${path}\` does`).not.toEqual([]);
    }
  });

  test('other routes say where it is called, and its own what others do not', async () => {
    const chat = await spine.post('/chat/completions', {
      model: nameOf(kind),
      messages: [{ role: 'user', content: 'x' }],
    });
    expect(await messageOf(chat)).toBe(`422 ${nameOf(kind)} ${does}. Call it at ${paths[0]}`);
    if (isJson())
      expect(await messageOf(await spine.post(paths[0], example(CHAT)))).toBe(
        `422 ${CHAT} ${doesNot}. Call it at /chat/completions`,
      );
  });

  test('it has a method of JSON-RPC, if its request and its answer are JSON', async () => {
    const answer = Object.keys(operation().responses['200'].content).join();
    expect(method !== undefined, 'the table names its method').toBe(isJson() && answer === 'application/json');
    const found = await spine.post('/rpc', { jsonrpc: '2.0', id: 1, method: 'rpc.discover' });
    const { result } = (await found.json()) as { readonly result: { readonly methods: readonly { name: string }[] } };
    if (method !== undefined) expect(result.methods.map(({ name }) => name)).toContain(method);
  });

  test('its quote is asked for by fields of its request', async () => {
    if (quotedBy === undefined || !isJson()) return;
    expect(schema().required).toEqual(['model', ...quotedBy]);
    const answer = await spine.post('/quotes', { primitive: 'model', ...example(nameOf(kind)) });
    expect(await answer.json()).toMatchObject({ valid: true, message: '' });
  });

  test('lists of models select it, with the fields that it takes', async () => {
    const answer = await spine.get(`/models?output_modalities=${kind}`);
    const { data } = (await answer.json()) as { readonly data: readonly { readonly id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([nameOf(kind)]);
  });

  test('it is in the text for language models', async () => {
    expect(await (await fetch(`${spine.origin}/llms.txt`)).text()).toContain(`\`POST /api/v1${paths[0]}\``);
  });

  test('the page of a service has code that calls it', () => {
    const service = { primitive: 'model' as const, name: 'm', durations: [], output_modalities: [kind] };
    const [curl] = snippetsOf(calledOf(service, 'https://gate.example'));
    expect(curl!.code, `CODE_OF_OUTPUTS of web/src/pages/offering/code.ts has ${kind}, with curl first`).toContain(
      `https://gate.example/api/v1${paths[0]}`,
    );
  });

  test('the list of pages has its page', () => {
    const list = textOf('README.md');
    const pages = pagesOf(paths[0]);
    expect(
      pages.some((page) => list.includes(`](${page})`)),
      `docs/README.md links one of ${pages.join(', ')}`,
    ).toBe(true);
  });

  test('its price per call has the words of its unit', () => {
    if (perCall === undefined) return;
    const [line] = priceLines('model', { per_call: 0.01 });
    expect(line!.unit, 'per_call of TOKEN_UNITS in web/src/ui/price-words.ts').toContain(perCall.unit);
    expect(
      /^\| `per_call` .*$/m.exec(textOf('reference/prices.md'))![0],
      'its row in docs/reference/prices.md',
    ).toContain(perCall.unit);
  });

  test('a search for what it does finds it', () => {
    const service = (output: string) => ({
      primitive: 'model' as const,
      name: `a/${output.length}`,
      display_name: '',
      description: '',
      input_modalities: ['text'],
      output_modalities: [output],
      supported_parameters: [],
      typical_usd: 0,
      providers: [],
    });
    const its = service(kind);
    expect(
      createServiceSearch([service('text'), its], () => [])(does),
      'GIVES of web/src/search/services.ts',
    ).toContain(its);
  });

  test('it is in the table of endings', () => {
    expect(
      WITH_ENDINGS.map(({ name }) => name),
      'KINDS of test/spine/endings/kinds.ts says how it is asked, how its vendor answers and what that costs',
    ).toContain(kind);
  });
});
