import { curl } from '../../code/curl.ts';
import type { Snippet } from '../../code/snippet.ts';
import { exampleOf, type Endpoint, type Parameter, type Resolve, type Schema } from './document.ts';

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json$/;
const FORM_TYPE = 'multipart/form-data';
const ID = 'ID';

/** The request of an example. */
export interface SampleCall {
  readonly method: string;
  /** The path with its parameters filled in, and the query. */
  readonly target: string;
  readonly json: unknown;
  /** Fields of a form. A file is `@name`. */
  readonly form: Readonly<Record<string, string>> | null;
  /** The name of the variable with the credential. null if none is needed. */
  readonly secret: 'KEY' | 'ADMIN_KEY' | null;
}

/** An example of a call of the endpoint: with what it requires, and the body of its own example. */
export function sampleCall(endpoint: Endpoint, resolve: Resolve): SampleCall {
  const { method, path, chapter, requestBody, security = [] } = endpoint;
  const parameters = (endpoint.parameters ?? []).map((each) => resolve(each));
  const query = parameters
    .filter(({ in: place, required }) => place === 'query' && required === true)
    .map((parameter) => `${parameter.name}=${encodeURIComponent(valueOf(parameter))}`);
  const filled = path.replaceAll(/\{(\w+)\}/g, (whole, name: string) => {
    const parameter = parameters.find((each) => each.in === 'path' && each.name === name);
    return parameter === undefined ? whole : valueOf(parameter).replaceAll(' ', '%20');
  });
  const contents = Object.entries(requestBody?.content ?? {});
  const json = contents.find(([type]) => JSON_TYPE.test(type))?.[1];
  const form = contents.find(([type]) => type === FORM_TYPE)?.[1];
  return {
    method,
    target: filled + (query.length > 0 ? `?${query.join('&')}` : ''),
    json: json === undefined ? undefined : (exampleOf(json, resolve) ?? fieldsOf(json.schema, resolve)),
    form: json === undefined && form !== undefined ? textsOf(exampleOf(form, resolve), form.schema, resolve) : null,
    secret: security.every((way) => Object.keys(way).length === 0)
      ? null
      : chapter === 'Administration'
        ? 'ADMIN_KEY'
        : 'KEY',
  };
}

/** A value for a parameter: its example, its default, its first choice, or its name in capitals. */
export function valueOf({ name, example, schema }: Parameter): string {
  const known = example ?? schema?.examples?.[0] ?? schema?.default ?? schema?.enum?.[0];
  return known === undefined ? (name === 'id' ? ID : name.toUpperCase()) : String(known);
}

/** The required members of a body that has no example. */
function fieldsOf(schema: Schema | undefined, resolve: Resolve): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [] } = schema === undefined ? {} : resolve(schema);
  return Object.fromEntries(
    required.map((name) => {
      const field: Schema = resolve(properties[name] ?? {});
      const type = [field.type].flat()[0];
      const plain = { integer: 1, number: 1, boolean: true, array: [], object: {} } as const;
      const known = field.const ?? field.examples?.[0] ?? field.default ?? field.enum?.[0];
      return [name, known ?? plain[type as keyof typeof plain] ?? '…'];
    }),
  );
}

function textsOf(example: unknown, schema: Schema | undefined, resolve: Resolve): Readonly<Record<string, string>> {
  const values = (example ?? fieldsOf(schema, resolve)) as Readonly<Record<string, unknown>>;
  const { properties = {} } = schema === undefined ? {} : resolve(schema);
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      const file = resolve(properties[name] ?? {}).format === 'binary' || name === 'file' || name === 'image';
      const text = typeof value === 'string' ? value : JSON.stringify(value);
      return [name, file ? `@${name}` : text];
    }),
  );
}

/** The call in curl, in JavaScript and in Python. `base` is the address of the gateway. */
export function samplesOf(call: SampleCall, base: string): readonly Snippet[] {
  return [
    { id: 'curl', name: 'curl', code: inCurl(call, base) },
    { id: 'javascript', name: 'JavaScript', code: inJavaScript(call, base) },
    { id: 'python', name: 'Python', code: inPython(call, base) },
  ];
}

function inCurl({ method, target, json, form, secret }: SampleCall, base: string): string {
  const url = /[?&]/.test(target) ? `'${base}${target}'` : base + target;
  if (json !== undefined && secret === 'KEY' && method === 'POST') return curl(url, json);
  return [
    `curl ${method === 'GET' || form !== null ? '' : `-X ${method} `}${url}`,
    ...(secret === null ? [] : [`-H "Authorization: Bearer $${secret}"`]),
    ...(json === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d '${shellText(JSON.stringify(json, null, 2))}'`]),
    ...Object.entries(form ?? {}).map(([name, value]) => `-F '${name}=${shellText(value)}'`),
  ].join(' \\\n  ');
}

const shellText = (text: string): string => text.replaceAll("'", String.raw`'\''`);
const indented = (text: string, by: number): string => text.replaceAll('\n', `\n${' '.repeat(by)}`);
const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function inJavaScript({ method, target, json, form, secret }: SampleCall, base: string): string {
  const headers = [
    ...(secret === null ? [] : [`Authorization: \`Bearer \${process.env.${secret}}\``]),
    ...(json === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ];
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} }`] : []),
    ...(json === undefined ? [] : [`body: JSON.stringify(${indented(JSON.stringify(json, null, 2), 2)})`]),
    ...(form === null ? [] : ['body: form']),
  ];
  const lines = Object.entries(form ?? {}).map(([name, value]) =>
    value.startsWith('@')
      ? `form.append('${name}', await openAsBlob('${value.slice(1)}'), '${value.slice(1)}');`
      : `form.append('${name}', ${quoted(value)});`,
  );
  return [
    ...(lines.some((line) => line.includes('openAsBlob')) ? ["import { openAsBlob } from 'node:fs';\n"] : []),
    ...(form === null ? [] : ['const form = new FormData();', ...lines]),
    options.length === 0
      ? `const answer = await fetch('${base}${target}');`
      : `const answer = await fetch('${base}${target}', {\n  ${options.join(',\n  ')},\n});`,
    'console.log(answer.status, await answer.text());',
  ].join('\n');
}

/** JSON as a Python literal. */
function pythonOf(value: unknown, depth = 0): string {
  if (value === null) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value !== 'object') return JSON.stringify(value);
  const inner = '    '.repeat(depth + 1);
  const parts = Array.isArray(value)
    ? value.map((each) => inner + pythonOf(each, depth + 1))
    : Object.entries(value).map(([name, each]) => `${inner}${JSON.stringify(name)}: ${pythonOf(each, depth + 1)}`);
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  return parts.length === 0 ? open + close : `${open}\n${parts.join(',\n')},\n${'    '.repeat(depth)}${close}`;
}

function inPython({ method, target, json, form, secret }: SampleCall, base: string): string {
  const fields = Object.entries(form ?? {});
  const files = fields.filter(([, value]) => value.startsWith('@'));
  const texts = fields.filter(([, value]) => !value.startsWith('@'));
  const options = [
    ...(secret === null ? [] : [`headers={"Authorization": f"Bearer {os.environ['${secret}']}"}`]),
    ...(json === undefined ? [] : [`json=${indented(pythonOf(json), 4)}`]),
    ...(texts.length > 0 ? [`data=${indented(pythonOf(Object.fromEntries(texts)), 4)}`] : []),
    ...(files.length > 0
      ? [`files={${files.map(([name, value]) => `"${name}": open("${value.slice(1)}", "rb")`).join(', ')}}`]
      : []),
  ];
  const address = JSON.stringify(base + target);
  return [
    ...(secret === null ? [] : ['import os']),
    'import requests\n',
    options.length === 0
      ? `answer = requests.${method.toLowerCase()}(${address})`
      : `answer = requests.${method.toLowerCase()}(\n    ${[address, ...options].join(',\n    ')},\n)`,
    'print(answer.status_code, answer.text)',
  ].join('\n');
}
