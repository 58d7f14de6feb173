import { readFileSync } from 'node:fs';
import { isObject } from '#wire';
import type { OpenApiOperation, PathTable, Response } from './complete-operations.ts';

type Examples = Readonly<Record<string, unknown>>;
interface Link {
  readonly operationId: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Adds an example to each answer that has one, and links to what can be done with an answer. An answer whose schema has
 * a name has the example of that name, any other that of its operation. Returns the examples that are used several
 * times, for `components.examples`.
 */
export function addExamplesAndLinks(paths: PathTable): Record<string, { readonly value: unknown }> {
  const file = new URL('./answer-examples.json', import.meta.url);
  const examples = JSON.parse(readFileSync(file, 'utf8')) as Examples;
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  const ids = new Set(operations.map(({ operationId }) => operationId));
  const places = new Map<string, Record<string, unknown>[]>();
  for (const operation of operations)
    for (const answer of goodAnswers(operation)) {
      const ofCall = isOfCall(answer) ? OF_CALL : [];
      const links = [...ofCall, ...(LINKS[operation.operationId ?? ''] ?? [])].filter(([, { operationId }]) =>
        ids.has(operationId),
      );
      if (links.length > 0) answer.links = Object.fromEntries(links);
      for (const [type, content] of Object.entries(answer.content ?? {})) {
        if (!isObject(content)) continue;
        const name = nameOf(operation, type, content);
        if (Object.hasOwn(examples, name)) places.set(name, [...(places.get(name) ?? []), content]);
      }
    }
  const shared: Record<string, { readonly value: unknown }> = {};
  for (const [name, contents] of places) {
    const value = examples[name];
    if (contents.length === 1) contents[0]!['example'] = value;
    else {
      shared[name] = { value };
      for (const content of contents) content['examples'] = { answer: { $ref: `#/components/examples/${name}` } };
    }
  }
  return shared;
}

const goodAnswers = ({ responses = {} }: OpenApiOperation): (Response & { links?: object })[] =>
  Object.entries(responses).flatMap(([status, answer]) => (status.startsWith('2') ? [answer] : []));

/** Whether a billed call gives the answer: its header names the record of the call. */
const isOfCall = ({ headers = {} }: Response): boolean => Object.hasOwn(headers, 'x-cost-usd');

function nameOf(
  { operationId = '' }: OpenApiOperation,
  type: string,
  { schema }: Readonly<Record<string, unknown>>,
): string {
  const ref = isObject(schema) ? schema['$ref'] : undefined;
  if (typeof ref === 'string') return ref.slice(ref.lastIndexOf('/') + 1);
  return type === 'application/json' ? operationId : `${operationId} ${type}`;
}

type Links = readonly (readonly [name: string, link: Link])[];

/** Links to operations that take an id in their address. */
const withId = (name: string, value: string, operations: Readonly<Record<string, string>>, more: object = {}): Links =>
  Object.entries(operations).map(([link, operationId]) => [
    link,
    { operationId, parameters: { [name]: value, ...more } },
  ]);

const OF_CALL = withId('id', '$response.header.x-generation-id', { Record: 'showOneCall' });
const VIDEO = { Show: 'showVideo', Fetch: 'fetchVideo', Delete: 'deleteVideo' };
const quoted = (operationId: string): Links => withId('x-quote-id', '$response.body#/quote_id', { Call: operationId });
const RESPONSE = {
  Show: 'showResponse',
  Input: 'listResponseInput',
  Cancel: 'cancelResponse',
  Delete: 'deleteResponse',
};
const KEY = { Show: 'showOneOfYourKeys', Change: 'changeAKey', Delete: 'deleteAKey' };
const MEMBER = { Change: 'changeAMember', Remove: 'removeAMember' };
const ACCOUNT = { Show: 'showAnAccount', Credit: 'creditAnAccount', MakeKey: 'createAKeyForAnAccount' };
const KEY_OF_ACCOUNT = { Change: 'changeAKeyOfAnAccount', Delete: 'deleteAKeyOfAnAccount' };

/** Links by the id of the operation whose answer they begin at, beside the link from a call to its record. */
const LINKS: Readonly<Record<string, Links>> = {
  createResponse: withId('response_id', '$response.body#/id', RESPONSE),
  createVideo: withId('id', '$response.body#/id', VIDEO),
  queueVideo: withId('id', '$response.body#/id', VIDEO),
  quoteGenerateImages: quoted('generateImages'),
  quoteEditImages: quoted('editImages'),
  quoteVideos: quoted('queueVideo'),
  quoteCall: quoted('createChatCompletion'),
  createAKey: withId('hash', '$response.body#/data/hash', KEY),
  addAMember: withId('member', '$response.body#/data/account', MEMBER),
  createAnAccount: withId('id', '$response.body#/data/id', ACCOUNT),
  createAKeyForAnAccount: withId('hash', '$response.body#/data/hash', KEY_OF_ACCOUNT, { id: '$request.path.id' }),
  createAdminKey: withId('id', '$response.body#/data/id', { Revoke: 'revokeAnAdminKey' }),
  withdrawMoney: withId('id', '$response.body#/data/id', { Show: 'showAWithdrawal' }),
};
